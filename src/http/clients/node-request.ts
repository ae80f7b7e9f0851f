import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { NEUTRAL, type Outcome, outcomeOfError, SUCCESS } from "../../core/breaker/classify.ts";
import { BodyUnreadError } from "../../errors.ts";
import { NO_KEYS } from "../../policy/identity.ts";
import type { Timer } from "../../time/time.ts";
import type { ActiveRequest, ActiveRequests } from "../active-requests.ts";
import type { StoredResponses } from "../cache/stored-responses.ts";
import type { CallOptions } from "../call-options.ts";
import { CallRecord, deadlineError } from "../call-record.ts";
import { silentOutcome } from "../stages/abort-outcome.ts";
import type { CallerIdentity } from "../stages/caller-identity.ts";
import { type GatedFields, GatedRequest, type GatedRequestDeps } from "../stages/gated-request.ts";
import { hostFeedback } from "../stages/host-feedback.ts";
import type { PausedBody, UnreadBodies } from "../stages/unread-bodies.ts";
import { isConnectionCut } from "../stages/write-stamp.ts";
import type { Tracers } from "../tracers.ts";
import type { AttemptTrace } from "../tracing.ts";
import { countReceived, countSent } from "./node-bytes.ts";
import { connectionReset } from "./node-hooks.ts";
import { addIdentity, addMissingHeaders, scrubLocation } from "./node-identity.ts";
import { onHeadersWritten } from "./node-write.ts";

export interface NodeRequestDeps extends GatedRequestDeps {
  readonly unreadBodies: UnreadBodies;
  readonly activeRequests: ActiveRequests;
  readonly callerIdentity: () => CallerIdentity;
  readonly tracers: Tracers;
  /** Removes the stored responses that a successful unsafe request makes invalid. */
  readonly invalidate: StoredResponses["invalidate"];
  /** Called when a request enters the hub. */
  readonly onStarted: () => void;
}

/** What is known about a request before it is sent. */
export interface NodeRequestPlan {
  readonly origin: string;
  readonly host: string;
  readonly path: string;
  readonly writtenPath: string;
  readonly call: CallOptions;
  /** Called when the request gets its socket, before it writes; may destroy the socket. */
  readonly onSocket: ((socket: Socket) => void) | undefined;
  /** Gives the request to its agent, which connects and sends it. */
  readonly send: () => void;
  /** Ends a request that has no socket: with this error, or with that of its own `destroy`. */
  readonly end: (error?: Error) => void;
}

/**
 * Sockets over which a request was sent. Node's `reusedSocket` differs: it is true if the only earlier request ended
 * before it was written, and false if the request had to wait for a used socket.
 */
const USED_SOCKETS = new WeakSet<Socket>();

/**
 * A request of node:http that goes through the gate. It is held until it has a grant. The grant is stamped when the
 * headers are written, gets the outcome when the response begins or fails, and is released when the request is closed.
 *
 * It watches the request by its own `emit` and `destroy`, and not by listeners: a listener for `response` or `upgrade`
 * would change what node:http does with a response that the client does not handle.
 */
export class NodeRequest extends GatedRequest<GatedFields, NodeRequestDeps> implements ActiveRequest, PausedBody {
  readonly isCall = true;
  previousActive: ActiveRequest | undefined = undefined;
  nextActive: ActiveRequest | undefined = undefined;
  isOver = false;
  protected sentKeys = NO_KEYS;
  readonly #client: ClientRequest;
  readonly #plan: NodeRequestPlan;
  /** The trace of the attempt; undefined without a tracer, and once the request is sent. */
  #trace: AttemptTrace | undefined;
  /** Bytes of its body that the client has written so far, sent or not. */
  #bodyBytes = 0;
  #deadline: Timer | undefined;
  #response: IncomingMessage | undefined;
  #error: unknown;
  /** Bytes that had arrived at the last check of the body, and bytes of the body that the client had taken then. */
  #checked = { arrived: 0, taken: 0 };
  #receivedBytes = 0;
  #hasSocket = false;
  #isAborted = false;
  #isEndedByHub = false;
  #isTimedOut = false;
  /** The headers were passed to a connection. */
  #isWritten = false;

  constructor(deps: NodeRequestDeps, client: ClientRequest, plan: NodeRequestPlan) {
    super(deps, gatedFields(client, plan, deps.time.monotonicUs()));
    this.#client = client;
    this.#plan = plan;
  }

  begin(): void {
    this.deps.activeRequests.add(this);
    this.deps.onStarted();
    this.#watch();
    if (this.#plan.call.deadlineMs !== undefined) this.#armDeadline();
    try {
      const identity = this.deps.callerIdentity();
      this.request.record.identity = identity;
      this.sentKeys = addIdentity(this.#client, this.#plan, identity);
      this.#startTrace();
      this.enter();
    } catch (error) {
      this.refused(error);
    }
  }

  /** Called when the hub is destroyed. */
  abort(reason: unknown): void {
    this.#isEndedByHub = true;
    this.#client.destroy(reason instanceof Error ? reason : new Error(String(reason)));
  }

  /** Called when nothing of the body was read for a while: the server has sent nothing, or the client does not read. */
  abandon(unreadMs: number): void {
    const response = this.#response;
    if (response === undefined || this.isOver) return;
    const before = this.#checked;
    this.#checked = this.#progressOf(response);
    // A client may wait for more than has arrived, or read slowly what arrived at once.
    const isSame = this.#checked.arrived === before.arrived && this.#checked.taken === before.taken;
    if (!isSame || (response.readableLength === 0 && !response.complete)) {
      this.deps.unreadBodies.paused(this);
      return;
    }
    const { host, role } = this.request;
    this.#error = new BodyUnreadError({ host, role, unreadMs });
    this.deps.telemetry.emitUnreadBody(this.request, unreadMs);
    this.#isEndedByHub = true;
    response.destroy(this.#error as Error);
    this.#finish(this.request.record.outcome ?? SUCCESS);
  }

  #progressOf(response: IncomingMessage): { readonly arrived: number; readonly taken: number } {
    return {
      arrived: this.#client.socket?.bytesRead ?? 0,
      taken: this.#receivedBytes - response.readableLength,
    };
  }

  #watch(): void {
    const request = this.#client;
    const { emit, destroy } = request;
    countSent(request, bytes => {
      this.#bodyBytes += bytes;
    });
    request.emit = (name: string | symbol, ...values: unknown[]) =>
      this.#observe(String(name), values) && emit.call(request, name as string, ...values);
    request.destroy = (error?: Error) => {
      const isFirst = !request.destroyed;
      destroy.call(request, error);
      if (isFirst) this.#aborted(error);
      return request;
    };
  }

  /** False when the event must not reach the client. */
  #observe(name: string, [first]: readonly unknown[]): boolean {
    // A client that has got its response may no longer listen for errors, and an unhandled one would end the process.
    if (name === "error" && this.#isEndedByHub && this.#client.listenerCount("error") === 0) return false;
    if (this.isOver) return true;
    if (name === "socket") this.#connected(first as Socket);
    else if (name === "information" || name === "continue") this.stamp?.stamp();
    else if (name === "response" || name === "upgrade" || name === "connect")
      return this.#answered(first as IncomingMessage);
    else if (name === "timeout") this.#isTimedOut = true;
    else if (name === "error") this.#failed(first);
    else if (name === "close") this.#closed();
    return true;
  }

  /** Called before the wait: clients end their request at once, and then its headers are fixed. */
  #startTrace(): void {
    this.deps.tracers.start(this.request);
    const { origin, method } = this.request;
    this.#trace = this.request.record.trace?.attemptStarted({ attempt: 1, method, origin });
    if (this.#trace !== undefined) addMissingHeaders(this.#client, this.#trace.headers);
  }

  protected get isBoundByDeadline(): boolean {
    return this.#plan.call.deadlineMs !== undefined;
  }

  protected send(nowUs: number): void {
    const trace = this.#trace;
    this.#trace = undefined;
    if (this.grant !== undefined)
      this.log = this.deps.telemetry.beginAttempt(this.request, this.grant, false, trace, nowUs);
    this.#plan.send();
  }

  #connected(socket: Socket): void {
    this.#hasSocket = true;
    this.#plan.onSocket?.(socket);
    onHeadersWritten(this.#client, socket, () => {
      this.#isWritten = true;
      const isNewConnection = !USED_SOCKETS.has(socket);
      USED_SOCKETS.add(socket);
      this.stamp?.start(isNewConnection);
      this.stamp?.sent();
      this.log?.started(isNewConnection);
      this.request.record.sent(this.deps.time.wallMs());
    });
  }

  /** False when the client must not get the response, because its Location contains a key. */
  #answered(response: IncomingMessage): boolean {
    const { statusCode: status = 0, statusMessage: statusText = "", headers } = response;
    this.status = status;
    this.#response = response;
    this.#watchDestroy(response);
    this.stamp?.stamp();
    this.log?.head(status);
    countReceived(response, bytes => {
      this.#receivedBytes += bytes;
      this.log?.received(bytes);
    });
    const { breakers, time, unreadBodies } = this.deps;
    const head = { status, statusText, headers, rawHeaders: undefined };
    this.reportHead(head, hostFeedback(head, this.#plan, breakers, time));
    this.#checked = this.#progressOf(response);
    unreadBodies.paused(this);
    try {
      const { identity } = this.request.record;
      if (identity !== undefined) scrubLocation(response, this.#plan, identity);
      return true;
    } catch (error) {
      this.#client.emit("error", error);
      this.#client.destroy();
      return false;
    } finally {
      this.deps.invalidate(this.request, { status, headers });
    }
  }

  /** A client that destroys its response has aborted. node:http itself destroys it only when the socket is closed. */
  #watchDestroy(response: IncomingMessage): void {
    const { destroy } = response;
    response.destroy = (error?: Error) => {
      if (!response.complete && this.#client.socket?.destroyed === false) this.#isAborted = true;
      return destroy.call(response, error);
    };
  }

  /** Reports before the client is notified: the client may send its next request at once. */
  #failed(error: unknown): void {
    this.#error ??= error;
    if (this.#response === undefined && !this.#isAborted) this.grant?.report({ outcome: outcomeOfError(error), error });
  }

  #aborted(error: Error | undefined): void {
    if (this.isOver) return;
    this.#isAborted = true;
    this.#error ??= error;
    const isQueued = this.passedUs === undefined;
    this.leaveQueue(error);
    // Without a socket nothing was written, and the agent may close the request much later.
    if (!this.#hasSocket) this.#finish(isQueued ? undefined : this.#outcome());
    if (isQueued) this.#plan.end();
  }

  protected refused(error: unknown): void {
    if (this.isOver) return;
    this.#error = error;
    this.#finish(undefined);
    this.#plan.end(error instanceof Error ? error : new Error(String(error)));
  }

  #armDeadline(): void {
    const { time } = this.deps;
    const leftMs = Math.max(0, (this.request.deadlineUs - time.monotonicUs()) / 1000);
    this.#deadline = time.setTimer(leftMs, () => {
      // A timer may fire up to 1 ms early.
      if (!this.#endIfExpired()) this.#armDeadline();
    });
  }

  /** Ends the request if its deadline has passed, else returns false. A client that reads the body gets the error there. */
  #endIfExpired(): boolean {
    const error = deadlineError(this.request, this.deps.time.monotonicUs());
    if (error === undefined) return false;
    this.#isEndedByHub = true;
    this.#error ??= error;
    if (this.#response === undefined) this.#client.destroy(error);
    else this.#response.destroy(error);
    return true;
  }

  #closed(): void {
    if (this.#isCut()) this.#error ??= connectionReset("the connection was closed before the response was complete");
    const outcome = this.#outcome();
    this.request.record.outcome = outcome;
    // Releases the slot after the agent has got the socket back: a request that got the slot earlier would open a second
    // connection.
    this.#finish(outcome, work => queueMicrotask(work));
  }

  #outcome(): Outcome {
    const { outcome = SUCCESS } = this.request.record;
    if (this.#response !== undefined) return this.#isCut() ? outcomeOfError(this.#error) : outcome;
    if (!this.#isAborted) return outcomeOfError(this.#error);
    if (this.#isTimedOut && this.passedUs !== undefined) return silentOutcome(!this.#isWritten);
    return this.outcomeOfAbort(this.#error, !this.#isWritten) ?? NEUTRAL;
  }

  /** Whether the connection ended in the middle of the response. */
  #isCut(): boolean {
    if (this.#response === undefined || this.#response.complete) return false;
    return !this.#client.destroyed || (!this.#isAborted && this.status !== 101);
  }

  #finish(outcome: Outcome | undefined, later: (work: () => void) => void = work => work()): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#deadline?.cancel();
    this.deps.unreadBodies.resumed(this);
    if (outcome !== undefined) this.grant?.report({ outcome, status: this.status, error: this.#error });
    const isCut = !this.#isAborted && isConnectionCut(this.#error);
    later(() => this.releaseGrant(isCut));
    this.deps.activeRequests.delete(this);
    this.#trace?.dropped();
    if (this.request.record.attempts > 0) this.log?.bodySent(this.#bodyBytes);
    this.endLog(outcome, this.#error, this.#isAborted);
    const isAborted = this.#isAborted && !this.#isEndedByHub;
    this.deps.telemetry.emitRequest(this.request, { status: this.status, error: this.#error, isAborted });
  }
}

/** A request of node:http is sent once: it is neither a retry nor a redirect of the hub. */
function gatedFields({ method }: ClientRequest, plan: NodeRequestPlan, nowUs: number): GatedFields {
  const { origin, host, path, call } = plan;
  return {
    origin,
    host,
    path,
    role: call.role ?? "metadata",
    method,
    call,
    startedUs: nowUs,
    signalSinceUs: undefined,
    deadlineUs: nowUs + (call.deadlineMs ?? Number.POSITIVE_INFINITY) * 1000,
    record: new CallRecord(),
    cause: "call",
    retryDelayMs: 0,
  };
}

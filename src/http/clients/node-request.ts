import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { NEUTRAL, type Outcome, outcomeOfError, SUCCESS } from "../../core/breaker/classify.ts";
import { BodyUnreadError } from "../../errors.ts";
import type { BreakerRegistry } from "../../gate/breaker-registry.ts";
import type { Gate } from "../../gate/gate.ts";
import type { QueuedCaller } from "../../limiter/entry-request.ts";
import type { Grant } from "../../limiter/grant.ts";
import type { Time, Timer } from "../../time/time.ts";
import type { ActiveRequest, ActiveRequests } from "../active-requests.ts";
import type { AttemptLog } from "../attempt-log.ts";
import type { CallOptions } from "../call-options.ts";
import { CallRecord, deadlineError } from "../call-record.ts";
import type { CallEnd, ReportedRequest } from "../request-telemetry.ts";
import { outcomeOfAbort, silentOutcome } from "../stages/abort-outcome.ts";
import type { AttemptTelemetry } from "../stages/attempt.ts";
import type { CallerIdentity } from "../stages/caller-identity.ts";
import type { DeferredStamps } from "../stages/deferred-stamps.ts";
import { hostFeedback } from "../stages/host-feedback.ts";
import type { PausedBody, UnreadBodies } from "../stages/unread-bodies.ts";
import { isConnectionCut, WriteStamp } from "../stages/write-stamp.ts";
import type { Tracers } from "../tracers.ts";
import type { AttemptTrace } from "../tracing.ts";
import { countReceived, countSent } from "./node-bytes.ts";
import { addIdentity, addMissingHeaders, scrubLocation } from "./node-identity.ts";
import { onHeadersWritten } from "./node-write.ts";

export interface NodeRequestDeps {
  readonly gate: Gate;
  readonly breakers: BreakerRegistry;
  readonly time: Time;
  readonly deferredStamps: DeferredStamps;
  readonly unreadBodies: UnreadBodies;
  readonly activeRequests: ActiveRequests;
  readonly callerIdentity: () => CallerIdentity;
  readonly telemetry: AttemptTelemetry;
  readonly tracers: Tracers;
  /** Called when a request enters the hub. */
  readonly onStarted: () => void;
  readonly onUnreadBody: (request: ReportedRequest, unreadMs: number) => void;
  /** Called once, when the request has ended. */
  readonly onFinished: (request: ReportedRequest, end: CallEnd) => void;
}

/** What is known about a request before it is sent. */
export interface NodeRequestPlan {
  readonly origin: string;
  readonly host: string;
  readonly path: string;
  readonly call: CallOptions;
  /** Gives the request to its agent, which connects and sends it. */
  readonly send: () => void;
  /** Ends a request that has no socket: with this error, or as its own `destroy` says. */
  readonly end: (error?: Error) => void;
}

/**
 * Sockets that have carried a request. `reusedSocket` is also true for one whose only request was ended before it was
 * written.
 */
const USED_SOCKETS = new WeakSet<Socket>();

/**
 * A request of node:http on its way through the gate: it is held until it has a grant, and the grant is stamped when
 * its headers are written, reported when the response begins or fails, and released when the request is closed.
 *
 * It watches the request by its own `emit` and `destroy`, and not by listeners: a listener for `response` or `upgrade`
 * would change what node:http does with a response that the client does not handle.
 */
export class NodeRequest implements ActiveRequest, QueuedCaller, PausedBody {
  readonly isCall = true;
  previousActive: ActiveRequest | undefined = undefined;
  nextActive: ActiveRequest | undefined = undefined;
  readonly #deps: NodeRequestDeps;
  readonly #request: ClientRequest;
  readonly #plan: NodeRequestPlan;
  readonly #reported: ReportedRequest;
  readonly #record = new CallRecord();
  #grant: Grant | undefined;
  #stamp: WriteStamp | undefined;
  /** Facts for the `http_attempt` event; undefined before the request is sent, and without listeners. */
  #log: AttemptLog | undefined;
  /** The trace of the attempt; undefined without a tracer, and once the request is sent. */
  #trace: AttemptTrace | undefined;
  /** Bytes of its body that the client has written so far, sent or not. */
  #bodyBytes = 0;
  #leaveQueue: ((reason: unknown) => void) | undefined;
  /** The part of the wait in the queue in which a circuit or cooldown blocked the request, in ms. */
  #blockedMs: () => number = () => 0;
  #jitter: Timer | undefined;
  /** When it first came to the gate, in monotonic microseconds; undefined before. */
  #enteredUs: number | undefined;
  #deadline: Timer | undefined;
  #response: IncomingMessage | undefined;
  #status: number | undefined;
  #error: unknown;
  #bytesRead = 0;
  #hasSocket = false;
  /** When the request was passed to its agent, in monotonic microseconds; undefined while it is queued. */
  #sentUs: number | undefined;
  #isAborted = false;
  #isEndedByHub = false;
  #isTimedOut = false;
  /** The headers were passed to a connection. */
  #isWritten = false;
  #isOver = false;

  constructor(deps: NodeRequestDeps, request: ClientRequest, plan: NodeRequestPlan) {
    this.#deps = deps;
    this.#request = request;
    this.#plan = plan;
    const { origin, host, path, call } = plan;
    const startedUs = deps.time.monotonicUs();
    const role = call.role ?? "metadata";
    this.#reported = {
      origin,
      host,
      path,
      role,
      method: request.method,
      call,
      startedUs,
      record: this.#record,
      cause: "call",
      retryDelayMs: 0,
    };
  }

  begin(): void {
    this.#deps.activeRequests.add(this);
    this.#deps.onStarted();
    this.#watch();
    if (this.#plan.call.deadlineMs !== undefined) this.#armDeadline();
    try {
      addIdentity(this.#request, this.#plan, this.#deps.callerIdentity());
      this.#startTrace();
      this.#enter();
    } catch (error) {
      this.#refuse(error);
    }
  }

  /** The hub is destroyed. */
  abort(reason: unknown): void {
    this.#isEndedByHub = true;
    this.#request.destroy(reason instanceof Error ? reason : new Error(String(reason)));
  }

  /** Nothing of the body was read for a while: either the server has sent nothing, or the client does not read. */
  abandon(unreadMs: number): void {
    const response = this.#response;
    if (response === undefined || this.#isOver) return;
    const bytesRead = this.#request.socket?.bytesRead ?? 0;
    const isUnread = (response.readableLength > 0 || response.complete) && bytesRead === this.#bytesRead;
    this.#bytesRead = bytesRead;
    if (!isUnread) {
      this.#deps.unreadBodies.paused(this);
      return;
    }
    const { host, role } = this.#reported;
    this.#error = new BodyUnreadError({ host, role, unreadMs });
    this.#deps.onUnreadBody(this.#reported, unreadMs);
    this.#isEndedByHub = true;
    response.destroy(this.#error as Error);
    this.#finish(this.#record.outcome ?? SUCCESS);
  }

  #watch(): void {
    const request = this.#request;
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
    if (name === "error" && this.#isEndedByHub && this.#request.listenerCount("error") === 0) return false;
    if (this.#isOver) return true;
    if (name === "socket") this.#connected(first as Socket);
    else if (name === "information" || name === "continue") this.#stamp?.stamp();
    else if (name === "response" || name === "upgrade" || name === "connect")
      return this.#answered(first as IncomingMessage);
    else if (name === "timeout") this.#isTimedOut = true;
    else if (name === "error") this.#failed(first);
    else if (name === "close") this.#closed();
    return true;
  }

  /** Before the wait: the client ends the request at once, and its headers are fixed then. */
  #startTrace(): void {
    this.#deps.tracers.start(this.#reported);
    const { origin, method } = this.#reported;
    this.#trace = this.#record.trace?.attemptStarted({ attempt: 1, method, origin });
    if (this.#trace !== undefined) addMissingHeaders(this.#request, this.#trace.headers);
  }

  #enter(): void {
    const { host, path, call } = this.#plan;
    const nowUs = this.#deps.time.monotonicUs();
    this.#record.queued(nowUs);
    this.#enteredUs ??= nowUs;
    // A trial call that a new cooldown sends back to the gate has waited before.
    const waitedMs = (nowUs - this.#enteredUs) / 1000;
    const { deadlineMs, maxWaitMs = deadlineMs } = call;
    const boundMs = deadlineMs === undefined ? maxWaitMs : Math.min(maxWaitMs ?? deadlineMs, deadlineMs);
    const entry = this.#deps.gate.enter({
      host,
      path,
      role: this.#reported.role,
      method: this.#request.method,
      weight: call.weight,
      resolver: call.resolver,
      service: call.service,
      partition: call.partition,
      // The gate checks the value of the caller.
      maxWaitMs: boundMs === undefined || waitedMs === 0 ? boundMs : Math.max(0, boundMs - waitedMs),
      maxWaitOption: boundMs === call.maxWaitMs ? "maxWaitMs" : "deadlineMs",
      maxBreakerWaitMs: call.maxBreakerWaitMs,
      caller: this,
    });
    // A promise keeps the caller's asynchronous context, whichever request frees the capacity.
    if (entry instanceof Promise) entry.then(grant => this.#granted(grant)).catch(error => this.#refuse(error));
    else this.#granted(entry);
  }

  onWait(leaveQueue: (reason: unknown) => void, blockedMs: () => number): void {
    this.#leaveQueue = leaveQueue;
    this.#blockedMs = blockedMs;
  }

  #granted(grant: Grant): void {
    this.#leaveQueue = undefined;
    // Ended in the moment between the grant and this call.
    if (this.#isOver) {
      grant.giveBack();
      return;
    }
    this.#grant = grant;
    this.#record.granted(grant.wait);
    const { time, deferredStamps } = this.#deps;
    // A reused socket is not a new connection.
    const connections = () => (this.#hasSocket && !this.#request.reusedSocket ? 1 : 0);
    this.#stamp = new WriteStamp({ time, deferredStamps, connections }, grant);
    if (grant.jitterMs === 0) this.#send();
    else this.#jitter = time.setTimer(grant.jitterMs, () => this.#afterJitter());
  }

  /** A trial call has waited for its jitter. A cooldown that began in the meantime sends it back to the gate. */
  #afterJitter(): void {
    this.#jitter = undefined;
    const { reason } = this.#deps.breakers.state(this.#plan.host);
    if (reason === undefined || reason === "failures") {
      this.#send();
      return;
    }
    this.#record.jitterLost(this.#grant?.jitterMs ?? 0);
    this.#grant?.giveBack();
    this.#grant = undefined;
    try {
      this.#enter();
    } catch (error) {
      this.#refuse(error);
    }
  }

  #send(): void {
    // On a busy event loop the request may get its slot before the timer of its deadline fires.
    if (this.#plan.call.deadlineMs !== undefined && this.#expired()) return;
    const grant = this.#grant;
    this.#sentUs = this.#deps.time.monotonicUs();
    this.#record.tried(grant?.jitterMs ?? 0);
    const trace = this.#trace;
    this.#trace = undefined;
    if (grant !== undefined) this.#log = this.#deps.telemetry.beginAttempt(this.#reported, grant, false, trace);
    this.#stamp?.dispatching();
    this.#plan.send();
  }

  #connected(socket: Socket): void {
    this.#hasSocket = true;
    onHeadersWritten(this.#request, socket, () => {
      this.#isWritten = true;
      this.#stamp?.start();
      this.#stamp?.sent();
      this.#log?.started(!USED_SOCKETS.has(socket));
      USED_SOCKETS.add(socket);
      this.#record.sent(this.#deps.time.wallMs());
    });
  }

  #answered(response: IncomingMessage): boolean {
    const { statusCode: status = 0, statusMessage: statusText = "", headers } = response;
    this.#status = status;
    this.#response = response;
    this.#watchDropped(response);
    this.#stamp?.stamp();
    this.#log?.head(status);
    countReceived(response, bytes => this.#log?.received(bytes));
    const { breakers, time, unreadBodies, callerIdentity } = this.#deps;
    const head = { status, statusText, headers, rawHeaders: undefined };
    const { outcome, retryAfterMs, announced } = hostFeedback(head, this.#plan, breakers, time);
    this.#record.settled(outcome, retryAfterMs);
    const isThrottled = outcome.kind === "failure" && outcome.throttled;
    this.#grant?.recordResponse({ isThrottled, retryAfterMs, announced });
    if (outcome.kind === "failure") this.#grant?.report({ outcome, status, retryAfterMs });
    else this.#grant?.answered();
    this.#bytesRead = this.#request.socket?.bytesRead ?? 0;
    unreadBodies.paused(this);
    try {
      scrubLocation(response, this.#plan, callerIdentity());
      return true;
    } catch (error) {
      this.#request.emit("error", error);
      this.#request.destroy();
      return false;
    }
  }

  /** A client that destroys its response has aborted; node:http itself does so only when the socket is closed. */
  #watchDropped(response: IncomingMessage): void {
    const { destroy } = response;
    response.destroy = (error?: Error) => {
      if (!response.complete && this.#request.socket?.destroyed === false) this.#isAborted = true;
      return destroy.call(response, error);
    };
  }

  /** Reported before the client is notified: it may send the next request at once. */
  #failed(error: unknown): void {
    this.#error ??= error;
    if (this.#response === undefined && !this.#isAborted)
      this.#grant?.report({ outcome: outcomeOfError(error), error });
  }

  #aborted(error: Error | undefined): void {
    if (this.#isOver) return;
    this.#isAborted = true;
    this.#error ??= error;
    const isQueued = this.#sentUs === undefined;
    this.#leaveQueue?.(error);
    // Without a socket nothing was written, and the agent may close the request much later.
    if (!this.#hasSocket) this.#finish(isQueued ? undefined : this.#outcome());
    if (isQueued) this.#plan.end();
  }

  #refuse(error: unknown): void {
    if (this.#isOver) return;
    this.#error = error;
    this.#finish(undefined);
    this.#plan.end(error instanceof Error ? error : new Error(String(error)));
  }

  #armDeadline(): void {
    const { time } = this.#deps;
    const leftMs = Math.max(0, (this.#deadlineUs - time.monotonicUs()) / 1000);
    this.#deadline = time.setTimer(leftMs, () => {
      // A timer may fire up to 1 ms early.
      if (!this.#expired()) this.#armDeadline();
    });
  }

  get #deadlineUs(): number {
    return this.#reported.startedUs + (this.#plan.call.deadlineMs ?? 0) * 1000;
  }

  /** Ends the request if its deadline has passed. */
  #expired(): boolean {
    const error = deadlineError({ ...this.#reported, deadlineUs: this.#deadlineUs }, this.#deps.time.monotonicUs());
    if (error !== undefined) this.#request.destroy(error);
    return error !== undefined;
  }

  #closed(): void {
    if (this.#isCut()) this.#error ??= connectionReset();
    const outcome = this.#outcome();
    this.#record.outcome = outcome;
    // After the agent has got the socket back: a request that got the slot earlier would open a second connection.
    this.#finish(outcome, work => queueMicrotask(work));
  }

  #outcome(): Outcome {
    const { outcome = SUCCESS } = this.#record;
    if (this.#response !== undefined) return this.#isCut() ? outcomeOfError(this.#error) : outcome;
    if (!this.#isAborted) return outcomeOfError(this.#error);
    if (this.#sentUs === undefined) return NEUTRAL;
    const isUnreached = !this.#isWritten;
    if (this.#isTimedOut) return silentOutcome(isUnreached);
    const nowUs = this.#deps.time.monotonicUs();
    const timeoutMs = (nowUs - this.#reported.startedUs) / 1000;
    return outcomeOfAbort(this.#error, { silentMs: (nowUs - this.#sentUs) / 1000, timeoutMs, isUnreached });
  }

  /** The connection ended in the middle of the response. */
  #isCut(): boolean {
    if (this.#response === undefined || this.#response.complete) return false;
    return !this.#request.destroyed || (!this.#isAborted && this.#status !== 101);
  }

  #finish(outcome: Outcome | undefined, later: (work: () => void) => void = work => work()): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#jitter?.cancel();
    this.#deadline?.cancel();
    this.#deps.unreadBodies.resumed(this);
    const [grant, stamp] = [this.#grant, this.#stamp];
    if (outcome !== undefined) grant?.report({ outcome, status: this.#status, error: this.#error });
    const isCut = !this.#isAborted && isConnectionCut(this.#error);
    if (stamp !== undefined) later(() => stamp.release(isCut));
    this.#deps.activeRequests.delete(this);
    this.#record.leftQueue(this.#deps.time.monotonicUs(), this.#blockedMs());
    this.#trace?.dropped();
    this.#endLog(outcome);
    this.#deps.onFinished(this.#reported, { status: this.#status, error: this.#error, isAborted: this.#isAborted });
  }
  /** Emits the event of the attempt, before the event of the call. */
  #endLog(outcome: Outcome | undefined): void {
    const log = this.#log;
    if (log === undefined) return;
    if (this.#record.attempts > 0) log.bodySent(this.#bodyBytes);
    const end = { outcome, error: this.#error, isAborted: this.#isAborted, isUnprocessed: false };
    this.#deps.telemetry.emitAttempt(log, this.#record.retryAfterMs, end);
  }
}

function connectionReset(): Error {
  return Object.assign(new Error("the connection was closed before the response was complete"), { code: "ECONNRESET" });
}

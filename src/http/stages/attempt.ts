import type { Duplex } from "node:stream";
import { type Dispatcher, errors } from "undici";
import { NEUTRAL, type Outcome, outcomeOfError, SUCCESS } from "../../core/breaker/classify.ts";
import { matchesBody } from "../../core/breaker/throttle-rule.ts";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import { BodyUnreadError } from "../../errors.ts";
import type { BreakerRegistry } from "../../gate/breaker-registry.ts";
import type { Gate } from "../../gate/gate.ts";
import type { QueuedCaller } from "../../limiter/entry-request.ts";
import type { Grant } from "../../limiter/grant.ts";
import type { Timer } from "../../time/time.ts";
import type { AttemptLog } from "../attempt-log.ts";
import { deadlineError } from "../call-record.ts";
import { withMissingHeaders } from "../headers.ts";
import type { RequestTelemetry } from "../request-telemetry.ts";
import { ownDispatch } from "../wire/own-sockets.ts";
import { outcomeOfAbort } from "./abort-outcome.ts";
import { BodySample } from "./body-sample.ts";
import { type HostFeedback, hostFeedback, settleCosts, throttled } from "./host-feedback.ts";
import { isReplayableBody } from "./resending-request.ts";
import type {
  OutgoingRequest,
  RequestHandle,
  ResponseHead,
  ResponseSink,
  SendIdentified,
  SentFields,
} from "./stage.ts";
import type { PausedBody, UnreadBodies } from "./unread-bodies.ts";
import { isConnectionCut, WriteStamp, type WriteStampDeps } from "./write-stamp.ts";

export interface AttemptDeps extends WriteStampDeps {
  readonly gate: Gate;
  readonly breakers: BreakerRegistry;
  readonly wire: Dispatcher;
  readonly unreadBodies: UnreadBodies;
  readonly telemetry: AttemptTelemetry;
  /** True for the first request that is written over a connection, asked while it is written. */
  readonly takeNewConnection: () => boolean;
  /** Called when a response was aborted because its caller did not read the body. */
  readonly onUnreadBody: (request: OutgoingRequest, unreadMs: number) => void;
}

/** Reports each attempt. */
export type AttemptTelemetry = Pick<RequestTelemetry, "beginAttempt" | "emitAttempt">;

/** The innermost stage: takes a grant from the gate and sends the request once. */
export function attemptStage(deps: AttemptDeps): SendIdentified {
  return (request, sink, sent) => new RequestAttempt(deps, request, sink, sent);
}

const RESOLVED = Promise.resolve();
const notBlocked = () => 0;
/** A server that ends more HTTP/2 sessions than this under one request has failed. */
const UNPROCESSED_RESENDS_MAX = 3;

/**
 * One attempt: takes a grant, sends the request, stamps the grant when the headers are written (write-stamp.ts), reports
 * the outcome once, and releases the grant when the body has ended. All of this holds whatever the caller, the server
 * and the connection do in between.
 */
class RequestAttempt implements RequestHandle, QueuedCaller, PausedBody, Dispatcher.DispatchHandler {
  readonly #deps: AttemptDeps;
  readonly #request: OutgoingRequest;
  readonly #sent: SentFields;
  /** Undefined once the response has ended, failed or been aborted. */
  #sink: ResponseSink | undefined;
  #grant: Grant | undefined;
  /** Undefined while there is no grant. */
  #stamp: WriteStamp | undefined;
  /** Facts for the `http_attempt` event; undefined before the attempt is sent, after its end and without listeners. */
  #log: AttemptLog | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  /** Leaves the queue of the gate; undefined while not queued. */
  #leaveQueue: ((reason: unknown) => void) | undefined;
  /** The part of the wait in the queue in which a circuit or cooldown blocked the request, in ms. */
  #blockedMs = notBlocked;
  #jitter: Timer | undefined;
  /** When it first came to the gate, in monotonic microseconds; undefined before. */
  #enteredUs: number | undefined;
  /** When the request was passed to the wire, in monotonic microseconds; undefined before. */
  #dispatchedUs: number | undefined;
  /** Status of the response; undefined before its head has arrived. */
  #status: number | undefined;
  #isPaused = false;
  /** `unreadBodies` knows of the body: it was paused before. */
  #isWatched = false;
  /** The beginning of a response whose body may say that the host throttles. */
  #heldBack: { readonly sample: BodySample; readonly feedback: HostFeedback } | undefined;
  /** How often the HTTP/2 session ended before the server processed the request, and whether it has just done so. */
  #unprocessed = 0;
  #isUnprocessed = false;
  #reason: unknown;

  constructor(deps: AttemptDeps, request: OutgoingRequest, sink: ResponseSink, sent: SentFields) {
    this.#deps = deps;
    this.#request = request;
    this.#sent = sent;
    this.#sink = sink;
    this.#scheduleEnter();
  }

  pause(): void {
    this.#isPaused = true;
    this.#controller?.pause();
    this.#watchUnread();
  }

  resume(): void {
    this.#isPaused = false;
    this.#unwatch();
    this.#controller?.resume();
  }

  abort(reason: unknown): void {
    if (this.#sink === undefined) return;
    this.#sink = undefined;
    this.#reason = reason ?? new errors.RequestAbortedError();
    // At once: the event of the call follows, and has this wait too.
    this.#request.record.leftQueue(this.#deps.time.monotonicUs(), this.#blockedMs());
    this.#leaveQueue?.(this.#reason);
    // Without a controller the request may still be connecting. Nothing is written, so the grant is given back at once
    // (law L5), and onRequestStart aborts the request before it is written.
    if (this.#controller === undefined) this.#end(this.#outcomeOfAbort(), this.#reason);
    else this.#controller.abort(this.#asError(this.#reason));
  }

  abandon(unreadMs: number): void {
    const { host, role } = this.#request;
    this.#deps.onUnreadBody(this.#request, unreadMs);
    const sink = this.#sink;
    const error = new BodyUnreadError({ host, role, unreadMs });
    this.abort(error);
    sink?.failed(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#sink === undefined) {
      controller.abort(this.#asError(this.#reason));
      return;
    }
    if (this.#controller !== undefined) {
      // undici sends a request again when its HTTP/2 session ended before the server processed it. Each sending needs
      // its own grant, so this one is aborted, and the request enters the gate again.
      this.#isUnprocessed = true;
      controller.abort(
        new errors.InformationalError("the HTTP/2 session ended before the server processed the request"),
      );
      return;
    }
    this.#controller = controller;
    this.#stamp?.start();
    this.#log?.started(this.#deps.takeNewConnection());
    this.#request.record.sent(this.#deps.time.wallMs());
    if (this.#isPaused) controller.pause();
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: HeaderFields,
    statusText = "",
  ): void {
    const head = { status, statusText, headers, rawHeaders: controller.rawHeaders };
    if (status < 200) {
      this.#sink?.interim(head);
      return;
    }
    this.#status = status;
    this.#stamp?.stamp();
    this.#log?.head(status);
    const feedback = hostFeedback(head, this.#request, this.#deps.breakers, this.#deps.time);
    const mayHoldBack = feedback.bodyRules.length > 0 && !this.#isPaused && this.#sink !== undefined;
    if (mayHoldBack && BodySample.isPossible(head, this.#request.method))
      this.#heldBack = { sample: new BodySample(head), feedback };
    else this.#deliverHead(head, feedback);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#log?.received(chunk.length);
    if (this.#heldBack === undefined) this.#sink?.data(chunk);
    else if (this.#heldBack.sample.add(chunk)) this.#deliverHeldBack();
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: HeaderFields): void {
    this.#deliverHeldBack();
    const sink = this.#sink;
    this.#sink = undefined;
    // The outcome of the head: a response that is neither a success nor a failure is reported when it is complete.
    const outcome = this.#request.record.outcome ?? SUCCESS;
    this.#endLog(outcome, undefined);
    // undici reuses the connection only in the turn of the event loop that it schedules when this method returns. A
    // request that got the slot earlier would open a second connection, and a host that allows one request at a time
    // often allows only one connection.
    if (this.#deps.gate.waiting > 0) this.#endInNextTurn(outcome);
    else this.#end(outcome);
    sink?.ended(trailers, controller.rawTrailers);
  }

  #endInNextTurn(outcome: Outcome): void {
    queueMicrotask(() => setImmediate(() => this.#end(outcome)));
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#isUnprocessed && this.#sendAgain()) return;
    const isAborted = this.#sink === undefined;
    const outcome = isAborted ? (this.#outcomeOfAbort() ?? NEUTRAL) : outcomeOfError(error);
    const { record } = this.#request;
    record.settled(outcome, record.retryAfterMs);
    this.#end(outcome, error);
    this.#fail(error);
  }

  onRequestUpgrade(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: HeaderFields,
    socket: Duplex,
  ): void {
    const sink = this.#sink;
    this.#sink = undefined;
    this.#status = status;
    this.#log?.head(status);
    this.#end(SUCCESS);
    if (sink === undefined) socket.destroy();
    else sink.upgraded({ status, statusText: "", headers, rawHeaders: controller.rawHeaders }, socket);
  }

  onBodySent(chunk: Buffer): void {
    this.#stamp?.sent();
    this.#log?.bodySent(chunk.length);
    this.#request.observer?.onBodySent?.(chunk);
  }

  onRequestSent(): void {
    this.#stamp?.sent();
    this.#request.observer?.onRequestSent?.();
  }

  onResponseStarted(): void {
    this.#stamp?.stamp();
    this.#request.observer?.onResponseStarted?.();
  }

  /** Ending a session is not a failure of the host. A request that was not processed may be resent, whatever its method. */
  #sendAgain(): boolean {
    this.#isUnprocessed = false;
    this.#unprocessed += 1;
    if (
      this.#sink === undefined ||
      this.#unprocessed > UNPROCESSED_RESENDS_MAX ||
      !isReplayableBody(this.#request.body)
    ) {
      return false;
    }
    this.#endLog(undefined, undefined, true);
    this.#end(undefined);
    this.#controller = undefined;
    this.#enteredUs = undefined;
    this.#scheduleEnter();
    return true;
  }

  /** Later, because the sink must not be called before `SendRequest` has returned, nor undici from its own callbacks. */
  #scheduleEnter(): void {
    // Cheaper than queueMicrotask, which creates an AsyncResource for each call.
    RESOLVED.then(() => {
      if (this.#sink !== undefined) this.#enter();
    });
  }

  #watchUnread(): void {
    if (this.#status === undefined || this.#grant === undefined) return;
    this.#isWatched = true;
    this.#deps.unreadBodies.paused(this);
  }

  #unwatch(): void {
    if (this.#isWatched) this.#deps.unreadBodies.resumed(this);
    this.#isWatched = false;
  }

  #enter(): void {
    const { host, role, path, method, call, record } = this.#request;
    const nowUs = this.#deps.time.monotonicUs();
    record.queued(nowUs);
    this.#enteredUs ??= nowUs;
    const maxWaitMs = this.#maxWaitMs(nowUs);
    try {
      const entry = this.#deps.gate.enter({
        host,
        role,
        path,
        method,
        weight: call.weight,
        costs: call.costs,
        resolver: call.resolver,
        service: call.service,
        partition: call.partition,
        maxWaitMs,
        maxWaitOption: maxWaitMs === call.maxWaitMs || !this.#isBoundByDeadline ? "maxWaitMs" : "deadlineMs",
        maxBreakerWaitMs: call.maxBreakerWaitMs,
        caller: this,
      });
      // A promise keeps the caller's asynchronous context, whichever request frees the capacity.
      if (!(entry instanceof Promise)) this.#granted(entry);
      else entry.then(grant => this.#granted(grant)).catch(error => this.#refused(error));
    } catch (error) {
      this.#refused(error);
    }
  }

  onWait(leaveQueue: (reason: unknown) => void, blockedMs: () => number): void {
    this.#leaveQueue = leaveQueue;
    this.#blockedMs = blockedMs;
  }

  get #isBoundByDeadline(): boolean {
    return this.#request.call.deadlineMs !== undefined || this.#unprocessed > 0;
  }

  /**
   * The deadline also bounds the time in the queue: a call that cannot be sent in time is refused at once. It is the only
   * bound when the call has no `maxWaitMs`, and for a request that is resent after its HTTP/2 session ended.
   */
  #maxWaitMs(nowUs: number): number | undefined {
    const { call, deadlineUs } = this.#request;
    // A trial call that a new cooldown sends back to the gate has waited before.
    const waitedMs = (nowUs - (this.#enteredUs ?? nowUs)) / 1000;
    // The gate checks the value of the caller.
    const ownMs =
      call.maxWaitMs === undefined || waitedMs === 0 ? call.maxWaitMs : Math.max(0, call.maxWaitMs - waitedMs);
    if (!this.#isBoundByDeadline) return ownMs;
    const leftMs = Math.max(0, (deadlineUs - nowUs) / 1000);
    return Math.min(ownMs ?? leftMs, leftMs);
  }

  #granted(grant: Grant): void {
    this.#leaveQueue = undefined;
    this.#grant = grant;
    this.#stamp = new WriteStamp(this.#deps, grant);
    this.#request.record.granted(grant.wait);
    if (this.#sink === undefined) this.#end(undefined);
    else if (grant.jitterMs === 0) this.#dispatchInTime(0);
    else this.#jitter = this.#deps.time.setTimer(grant.jitterMs, () => this.#afterJitter());
  }

  /** A trial call has waited for its jitter. A cooldown that began in the meantime sends it back to the gate. */
  #afterJitter(): void {
    const { host, path } = this.#request;
    const { reason } = this.#deps.breakers.state(host, path);
    const jitterMs = this.#grant?.jitterMs ?? 0;
    if (reason === undefined || reason === "failures") {
      this.#dispatchInTime(jitterMs);
      return;
    }
    this.#request.record.jitterLost(jitterMs);
    this.#end(undefined);
    this.#enter();
  }

  /** On a busy event loop the request may get its slot before the timer of its deadline fires. */
  #dispatchInTime(jitterMs: number): void {
    const late =
      this.#request.call.deadlineMs === undefined
        ? undefined
        : deadlineError(this.#request, this.#deps.time.monotonicUs());
    if (late === undefined) {
      this.#dispatch();
      return;
    }
    this.#request.record.jitterLost(jitterMs);
    this.#end(undefined);
    this.#fail(late);
  }

  #dispatch(): void {
    this.#jitter = undefined;
    const { options, origin, method, body, record } = this.#request;
    const { path, headers } = this.#sent;
    record.tried(this.#grant?.jitterMs ?? 0);
    const trace = record.account.trace?.attemptStarted({ attempt: record.account.tries, method, origin });
    const isResent = this.#unprocessed > 0;
    if (this.#grant !== undefined)
      this.#log = this.#deps.telemetry.beginAttempt(this.#request, this.#grant, isResent, trace);
    const sent = {
      ...options,
      origin,
      path,
      method,
      headers: (trace === undefined ? headers : withMissingHeaders(headers, trace.headers)) as string[],
      body: body ?? null,
    } as Dispatcher.DispatchOptions & { maxRedirections?: number };
    // The query is part of the path, and redirects are followed by an outer stage.
    if (sent.query !== undefined) delete sent.query;
    if (sent.maxRedirections !== undefined) sent.maxRedirections = 0;
    this.#stamp?.dispatching();
    this.#dispatchedUs = this.#deps.time.monotonicUs();
    ownDispatch.isRunning = true;
    try {
      if (this.#request.needsCallerContext || this.#unprocessed > 0)
        this.#request.callerContext.runInAsyncScope(this.#deps.wire.dispatch, this.#deps.wire, sent, this);
      else this.#deps.wire.dispatch(sent, this);
    } catch (error) {
      // undici's dispatchers report errors to the handler; a dispatcher given by the caller may throw.
      this.#end(outcomeOfError(error), error);
      this.#fail(error);
    } finally {
      ownDispatch.isRunning = false;
    }
  }

  #deliverHead(head: ResponseHead, feedback: HostFeedback): void {
    this.#reportHead(head, feedback);
    if (this.#isPaused) this.#watchUnread();
    this.#sink?.started(head);
  }

  /** The beginning of the body is known, and decides what the response says about the host. */
  #deliverHeldBack(): void {
    if (this.#heldBack === undefined) return;
    const { sample, feedback } = this.#heldBack;
    this.#heldBack = undefined;
    const text = sample.text();
    const rule = feedback.bodyRules.find(each => matchesBody(each, text));
    this.#deliverHead(sample.head, rule === undefined ? feedback : throttled(feedback, rule));
    for (const chunk of sample.chunks) this.#sink?.data(chunk);
  }

  /** A failure and its cooldown are reported at once, every other response only when its body is complete. */
  #reportHead(head: ResponseHead, { outcome, retryAfterMs, announced }: HostFeedback): void {
    const { record } = this.#request;
    record.settled(outcome, retryAfterMs);
    const isThrottled = outcome.kind === "failure" && outcome.throttled;
    if (this.#grant !== undefined) settleCosts(this.#grant, head, this.#request.call.settleCosts);
    this.#grant?.recordResponse({ isThrottled, retryAfterMs, announced });
    if (outcome.kind === "failure") this.#grant?.report({ outcome, status: head.status, retryAfterMs });
    else this.#grant?.answered();
  }

  /** The outcome of a request that the caller aborted; undefined when it was not dispatched. */
  #outcomeOfAbort(): Outcome | undefined {
    if (this.#status !== undefined) return this.#request.record.outcome ?? SUCCESS;
    if (this.#dispatchedUs === undefined) return undefined;
    const nowUs = this.#deps.time.monotonicUs();
    const sinceUs = Math.min(this.#request.signalSinceUs, this.#request.startedUs);
    return outcomeOfAbort(this.#reason, {
      silentMs: (nowUs - this.#dispatchedUs) / 1000,
      timeoutMs: (nowUs - sinceUs) / 1000,
      isUnreached: this.#controller === undefined,
    });
  }

  /** The gate has refused the request, or the caller has left the queue. */
  #refused(error: unknown): void {
    this.#request.record.leftQueue(this.#deps.time.monotonicUs(), this.#blockedMs());
    this.#fail(error);
  }

  /** Emits the event of the attempt, once. Before the caller learns of the end: its event comes later. */
  #endLog(outcome: Outcome | undefined, error: unknown, isUnprocessed = false): void {
    const log = this.#log;
    this.#log = undefined;
    if (log === undefined) return;
    const { outcome: reported, retryAfterMs } = this.#request.record;
    this.#deps.telemetry.emitAttempt(log, retryAfterMs, {
      // The head of a response that failed was reported when it arrived.
      outcome: outcome !== undefined && this.#status !== undefined ? (reported ?? outcome) : outcome,
      error,
      isAborted: this.#sink === undefined && error !== undefined,
      isUnprocessed,
    });
  }

  #end(outcome: Outcome | undefined, error?: unknown): void {
    this.#endLog(outcome, error);
    this.#jitter?.cancel();
    this.#jitter = undefined;
    this.#unwatch();
    const grant = this.#grant;
    if (grant === undefined) return;
    const stamp = this.#stamp;
    this.#grant = undefined;
    this.#stamp = undefined;
    if (outcome !== undefined) grant.report({ outcome, status: this.#status, error });
    // Without a sink this process has aborted the request, whatever error follows.
    stamp?.release(this.#sink !== undefined && isConnectionCut(error));
  }

  #fail(error: unknown): void {
    const sink = this.#sink;
    this.#sink = undefined;
    sink?.failed(error);
  }

  #asError(reason: unknown): Error {
    return reason instanceof Error ? reason : new errors.RequestAbortedError(String(reason));
  }
}

import type { Duplex } from "node:stream";
import { type Dispatcher, errors } from "undici";
import { NEUTRAL, type Outcome, outcomeOfError, SUCCESS } from "../../core/breaker/classify.ts";
import { matchesBody } from "../../core/breaker/throttle-rule.ts";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import { BodyUnreadError } from "../../errors.ts";
import type { SentKeys } from "../../policy/identity.ts";
import type { Timer } from "../../time/time.ts";
import type { ConnectionCount } from "../connection-count.ts";
import { withMissingHeaders } from "../headers.ts";
import { ownDispatch } from "../wire/own-sockets.ts";
import { BodySample } from "./body-sample.ts";
import { GatedRequest, type GatedRequestDeps } from "./gated-request.ts";
import { asThrottled, type HostFeedback, hostFeedback } from "./host-feedback.ts";
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
import { watchedBody } from "./watched-body.ts";
import { isConnectionCut } from "./write-stamp.ts";

export interface AttemptDeps extends GatedRequestDeps {
  readonly wire: Dispatcher;
  readonly unreadBodies: UnreadBodies;
  /** The connections of the wire. */
  readonly connections: ConnectionCount;
}

/** The innermost stage: takes a grant from the gate and sends the request once. */
export function attemptStage(deps: AttemptDeps): SendIdentified {
  return (request, sink, sent) => new RequestAttempt(deps, request, sink, sent);
}

const RESOLVED = Promise.resolve();
/** A body that says that the host throttles is short and arrives at once. A caller of another one must not wait longer. */
const SAMPLE_MS_MAX = 1000;
/** A server that ends more HTTP/2 sessions than this during one request has failed. */
const UNPROCESSED_RESENDS_MAX = 3;

/**
 * One attempt over undici: takes a grant, sends the request, stamps the grant when the headers are written, reports the
 * outcome once, and releases the grant when the body has ended. It does so whatever the caller, the server and the
 * connection do in the meantime.
 */
class RequestAttempt
  extends GatedRequest<OutgoingRequest, AttemptDeps>
  implements RequestHandle, PausedBody, Dispatcher.DispatchHandler
{
  readonly #sent: SentFields;
  /** Undefined once the response has ended, failed or been aborted. */
  #sink: ResponseSink | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  /** Connections that the wire had opened when it got the request. The request may be sent over one that is opened later. */
  #connectionsBefore = 0;
  #isPaused = false;
  /** The body was paused, and `unreadBodies` watches it. */
  #isWatched = false;
  /** The beginning of a response whose body may say that the host throttles. */
  #heldBack: { readonly sample: BodySample; readonly feedback: HostFeedback; readonly timer: Timer } | undefined;
  /** How often the HTTP/2 session ended before the server processed the request. */
  #unprocessedCount = 0;
  /** True while such a request is aborted, until its error arrives. */
  #isUnprocessed = false;
  #abortReason: unknown;
  /** The source of the request body has failed, which is no failure of the host, whatever the error says. */
  #hasBodyFailed = false;
  readonly #onBodyFailed = () => {
    this.#hasBodyFailed = true;
  };

  constructor(deps: AttemptDeps, request: OutgoingRequest, sink: ResponseSink, sent: SentFields) {
    super(deps, request);
    this.#sent = sent;
    this.#sink = sink;
    this.#scheduleEnter();
  }

  pause(): void {
    this.#isPaused = true;
    this.#controller?.pause();
    this.#watchUnread();
    // While the body is paused, no more of it arrives. Last, because a caller may resume when it gets the head.
    this.#deliverHeldBack();
  }

  resume(): void {
    this.#isPaused = false;
    this.#unwatch();
    this.#controller?.resume();
  }

  abort(reason: unknown): void {
    if (this.#sink === undefined) return;
    this.#sink = undefined;
    this.#abortReason = reason ?? new errors.RequestAbortedError();
    this.leaveQueue(this.#abortReason);
    // Without a controller the request may still be connecting. Nothing is written, so the grant is given back at once
    // (law L5), and onRequestStart aborts the request before it is written.
    if (this.#controller === undefined) this.#end(this.outcomeOfAbort(this.#abortReason, true), this.#abortReason);
    else this.#controller.abort(this.#asError(this.#abortReason));
  }

  abandon(unreadMs: number): void {
    const { host, role } = this.request;
    this.deps.telemetry.emitUnreadBody(this.request, unreadMs);
    const sink = this.#sink;
    const error = new BodyUnreadError({ host, role, unreadMs });
    this.abort(error);
    sink?.failed(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#sink === undefined) {
      controller.abort(this.#asError(this.#abortReason));
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
    this.stamp?.start(this.deps.connections.hasGrownFrom(this.#connectionsBefore));
    this.log?.started(this.deps.connections.takeNew());
    this.request.record.sent(this.deps.time.wallMs());
    if (this.#isPaused) controller.pause();
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: HeaderFields,
    statusText = "",
  ): void {
    if (status < 100) {
      // undici passes such a status on, and fails in an assertion at the end of the response.
      controller.abort(new errors.HTTPParserError(`the response has the invalid status ${status}`));
      return;
    }
    const head = { status, statusText, headers, rawHeaders: controller.rawHeaders };
    if (status < 200) {
      this.#sink?.interim(head);
      return;
    }
    this.status = status;
    this.stamp?.stamp();
    this.log?.head(status);
    const feedback = hostFeedback(head, this.request, this.deps.breakers, this.deps.time);
    const mayHoldBack = feedback.bodyRules.length > 0 && !this.#isPaused && this.#sink !== undefined;
    if (mayHoldBack && BodySample.isPossible(head, this.request.method)) {
      const timer = this.deps.time.setTimer(SAMPLE_MS_MAX, () => this.#deliverHeldBack());
      this.#heldBack = { sample: new BodySample(head), feedback, timer };
    } else this.#deliverHead(head, feedback);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.log?.received(chunk.length);
    if (this.#heldBack === undefined) this.#sink?.data(chunk);
    else if (this.#heldBack.sample.add(chunk)) this.#deliverHeldBack();
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: HeaderFields): void {
    this.#deliverHeldBack();
    const sink = this.#sink;
    this.#sink = undefined;
    // The outcome was decided by the head. One that is not a failure is reported only now, when the response is complete.
    const outcome = this.request.record.outcome ?? SUCCESS;
    this.endLog(outcome, undefined, false);
    // undici reuses the connection only in the turn of the event loop that it schedules when this method returns. A
    // request that got the slot earlier would open a second connection, and a host that allows one request at a time
    // often allows only one connection.
    if (this.deps.gate.waiting > 0) this.#endInNextTurn(outcome);
    else this.#end(outcome);
    sink?.ended(trailers, controller.rawTrailers);
  }

  #endInNextTurn(outcome: Outcome): void {
    queueMicrotask(() => setImmediate(() => this.#end(outcome)));
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#isUnprocessed && this.#sendAgain()) return;
    const isAborted = this.#sink === undefined;
    const outcome = isAborted
      ? (this.outcomeOfAbort(this.#abortReason, this.#controller === undefined) ?? NEUTRAL)
      : this.#outcomeOfError(error);
    const { record } = this.request;
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
    this.status = status;
    this.log?.head(status);
    this.#end(SUCCESS);
    if (sink === undefined) socket.destroy();
    else sink.upgraded({ status, statusText: "", headers, rawHeaders: controller.rawHeaders }, socket);
  }

  onBodySent(chunk: Buffer): void {
    this.stamp?.sent();
    this.log?.bodySent(chunk.length);
    this.request.observer?.onBodySent?.(chunk);
  }

  onRequestSent(): void {
    this.stamp?.sent();
    this.request.observer?.onRequestSent?.();
  }

  onResponseStarted(): void {
    this.stamp?.stamp();
    this.request.observer?.onResponseStarted?.();
  }

  /** The end of a session is not a failure of the host. A request that was not processed may be resent with any method. */
  #sendAgain(): boolean {
    this.#isUnprocessed = false;
    this.#unprocessedCount += 1;
    if (
      this.#sink === undefined ||
      this.#unprocessedCount > UNPROCESSED_RESENDS_MAX ||
      !isReplayableBody(this.request.body)
    ) {
      return false;
    }
    this.endLog(undefined, undefined, false, true);
    this.#end(undefined);
    this.#controller = undefined;
    this.#scheduleEnter();
    return true;
  }

  /** Enters the gate later: the sink must not be called before `SendRequest` has returned, nor undici from its callbacks. */
  #scheduleEnter(): void {
    // Cheaper than queueMicrotask, which creates an AsyncResource for each call.
    RESOLVED.then(() => {
      if (this.#sink !== undefined) this.enter();
    });
  }

  #watchUnread(): void {
    if (this.status === undefined || this.grant === undefined) return;
    this.#isWatched = true;
    this.deps.unreadBodies.paused(this);
  }

  #unwatch(): void {
    if (this.#isWatched) this.deps.unreadBodies.resumed(this);
    this.#isWatched = false;
  }

  get isOver(): boolean {
    return this.#sink === undefined;
  }

  /** Also true after an HTTP/2 session has ended: without `maxWaitMs`, the second sending may wait until the deadline. */
  protected get isBoundByDeadline(): boolean {
    return this.request.call.deadlineMs !== undefined || this.#unprocessedCount > 0;
  }

  protected get sentKeys(): SentKeys {
    return this.#sent.sentKeys;
  }

  protected send(nowUs: number): void {
    const { options, origin, method, body, record } = this.request;
    const { path, headers } = this.#sent;
    const trace = record.creditedCall.trace?.attemptStarted({ attempt: record.creditedCall.tries, method, origin });
    const isResent = this.#unprocessedCount > 0;
    if (this.grant !== undefined)
      this.log = this.deps.telemetry.beginAttempt(this.request, this.grant, isResent, trace, nowUs);
    const sent = {
      ...options,
      origin,
      path,
      method,
      headers: (trace === undefined ? headers : withMissingHeaders(headers, trace.headers)) as string[],
      body: watchedBody(body ?? null, headers, this.#onBodyFailed),
    } as Dispatcher.DispatchOptions & { maxRedirections?: number };
    // The query is part of the path, and redirects are followed by an outer stage.
    if (sent.query !== undefined) delete sent.query;
    if (sent.maxRedirections !== undefined) sent.maxRedirections = 0;
    this.#connectionsBefore = this.deps.connections.total;
    ownDispatch.isRunning = true;
    try {
      if (this.request.needsCallerContext || isResent)
        this.request.callerContext.runInAsyncScope(this.deps.wire.dispatch, this.deps.wire, sent, this);
      else this.deps.wire.dispatch(sent, this);
    } catch (error) {
      // undici's dispatchers report errors to the handler; a dispatcher given by the caller may throw.
      this.#end(this.#outcomeOfError(error), error);
      this.#fail(error);
    } finally {
      ownDispatch.isRunning = false;
    }
  }

  #deliverHead(head: ResponseHead, feedback: HostFeedback): void {
    this.reportHead(head, feedback);
    if (this.#isPaused) this.#watchUnread();
    this.#sink?.started(head);
  }

  /** Delivers the head and the beginning of the body, which decides whether the host throttles. */
  #deliverHeldBack(): void {
    if (this.#heldBack === undefined) return;
    const { sample, feedback, timer } = this.#heldBack;
    this.#heldBack = undefined;
    timer.cancel();
    const text = sample.text();
    const rule = feedback.bodyRules.find(each => matchesBody(each, text));
    this.#deliverHead(sample.head, rule === undefined ? feedback : asThrottled(feedback, rule));
    for (const chunk of sample.chunks) this.#sink?.data(chunk);
  }

  #end(outcome: Outcome | undefined, error?: unknown): void {
    this.endLog(outcome, error, this.#sink === undefined && error !== undefined);
    this.#unwatch();
    this.#heldBack?.timer.cancel();
    if (outcome !== undefined) this.grant?.report({ outcome, status: this.status, error });
    // Without a sink this process has aborted the request, whatever error follows.
    this.releaseGrant(this.#sink !== undefined && !this.#hasBodyFailed && isConnectionCut(error));
  }

  #outcomeOfError(error: unknown): Outcome {
    return this.#hasBodyFailed ? NEUTRAL : outcomeOfError(error);
  }

  protected refused(error: unknown): void {
    this.#fail(error);
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

import type { Duplex } from "node:stream";
import { type Dispatcher, errors } from "undici";
import type { BreakerRegistry } from "../../breaker/breaker-registry.ts";
import { type Outcome, outcomeOfError } from "../../core/breaker/classify.ts";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import { BodyUnreadError, DeadlineExceededError } from "../../errors.ts";
import type { Gate } from "../../gate/gate.ts";
import type { Grant } from "../../limiter/grant.ts";
import type { Time, Timer } from "../../time/time.ts";
import type { DeferredStamps } from "./deferred-stamps.ts";
import { hostFeedback } from "./host-feedback.ts";
import { isReplayableBody } from "./replayable.ts";
import type { OutgoingRequest, RequestHandle, ResponseHead, ResponseSink, SendRequest } from "./stage.ts";
import type { PausedBody, UnreadBodies } from "./unread-bodies.ts";

/** What every attempt of a hub works with. */
export interface AttemptDeps {
  readonly gate: Gate;
  readonly breakers: BreakerRegistry;
  readonly wire: Dispatcher;
  readonly time: Time;
  readonly unread: UnreadBodies;
  readonly deferredStamps: DeferredStamps;
  /** How many connections the wire has opened so far. */
  readonly connections: () => number;
  /** Told when a body was given up because nobody read it. */
  readonly onUnreadBody: (request: OutgoingRequest) => void;
}

/** The innermost stage: through the gate and onto the wire, once. */
export function attemptStage(deps: AttemptDeps): SendRequest {
  return (request, sink) => new RequestAttempt(deps, request, sink);
}

/** How long a request over a new connection counts as being written, unless its answer comes first. */
const NEW_CONNECTION_WRITE_MS = 100;
const RESOLVED = Promise.resolve();
const SUCCESS: Outcome = Object.freeze({ kind: "success" });
/** A server that gives up every session is one that fails. */
const UNPROCESSED_RESENDS_MAX = 3;

/**
 * One request on the wire. The grant is taken before it, stamped when its headers are written, told the outcome once,
 * and given back when the body has ended: whatever the caller, the server and the connection do meanwhile.
 */
class RequestAttempt implements RequestHandle, PausedBody, Dispatcher.DispatchHandler {
  readonly #deps: AttemptDeps;
  readonly #request: OutgoingRequest;
  /** Undefined once nobody is to be told any more. */
  #sink: ResponseSink | undefined;
  #grant: Grant | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  /** The way out of the line at the gate. */
  #leaveQueue: ((reason: unknown) => void) | undefined;
  #jitter: Timer | undefined;
  /** When its headers may have gone; undefined while nothing can have. */
  #writtenUs: number | undefined;
  #isNewConnection = false;
  #stampTimer: Timer | undefined;
  #hasHead = false;
  #isPaused = false;
  /** How often an HTTP/2 session was given up before the request was processed, and whether it was just now. */
  #unprocessed = 0;
  #isUnprocessed = false;
  #reason: unknown;
  #connectionsBefore = 0;

  constructor(deps: AttemptDeps, request: OutgoingRequest, sink: ResponseSink) {
    this.#deps = deps;
    this.#request = request;
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
    this.#deps.unread.resumed(this);
    this.#controller?.resume();
  }

  abort(reason: unknown): void {
    if (this.#sink === undefined) return;
    this.#sink = undefined;
    this.#reason = reason ?? new errors.RequestAbortedError();
    this.#leaveQueue?.(this.#reason);
    // Without a controller it may still be connecting: nothing is written, so everything goes back at once (law L5), and
    // the request is stopped when it would be written.
    if (this.#controller === undefined) this.#end(undefined);
    else this.#controller.abort(this.#asError(this.#reason));
  }

  abandon(): void {
    const { host, role } = this.#request;
    this.#deps.onUnreadBody(this.#request);
    const sink = this.#sink;
    const error = new BodyUnreadError({ host, role });
    this.abort(error);
    sink?.failed(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#sink === undefined) {
      controller.abort(this.#asError(this.#reason));
      return;
    }
    if (this.#controller !== undefined) {
      // undici sends a request again that an HTTP/2 session was given up under before the server processed it. Each
      // sending needs its own grant, so this one ends here, and it goes to the gate again.
      this.#isUnprocessed = true;
      controller.abort(new errors.InformationalError("the connection was given up before the request was processed"));
      return;
    }
    this.#controller = controller;
    this.#writtenUs = this.#deps.time.monotonicUs();
    this.#request.record.sentMs = this.#deps.time.wallMs();
    this.#isNewConnection = this.#deps.connections() !== this.#connectionsBefore;
    // A body may take long, and its server counts from the headers on.
    if (this.#request.body !== undefined && this.#request.body !== null) this.#grant?.written();
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
    this.#hasHead = true;
    this.#stampWritten();
    this.#reportHead(head);
    if (this.#isPaused) this.#watchUnread();
    this.#sink?.started(head);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#sink?.data(chunk);
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: HeaderFields): void {
    const sink = this.#sink;
    this.#sink = undefined;
    // undici takes a connection back in the next turn of the loop, and asks for that turn when this returns. Whoever
    // waits for the slot would find the connection busy and open another one, where a host that allows one request at a
    // time often means one connection.
    if (this.#deps.gate.waiting > 0) queueMicrotask(() => setImmediate(() => this.#end(SUCCESS)));
    else this.#end(SUCCESS);
    sink?.ended(trailers, controller.rawTrailers);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#isUnprocessed && this.#sendAgain()) return;
    const isOurs = this.#sink === undefined;
    const outcome = isOurs ? this.#outcomeOfAbort() : outcomeOfError(error);
    this.#request.record.outcome = outcome;
    this.#end(outcome);
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
    this.#end(SUCCESS);
    if (sink === undefined) socket.destroy();
    else sink.upgraded({ status, statusText: "", headers, rawHeaders: controller.rawHeaders }, socket);
  }

  onBodySent(chunk: Buffer): void {
    this.#request.observer?.onBodySent?.(chunk);
  }

  /**
   * It is in the hands of the system now, and that is the instant that counts. Over a connection that was opened for it
   * more may lie between here and the server's notice, all the more in the first burst of a program: there it counts as
   * being written until the first byte of the answer, or for a moment.
   */
  onRequestSent(): void {
    if (!this.#isNewConnection) this.#grant?.written();
    else if (this.#grant !== undefined)
      this.#stampTimer ??= this.#deps.time.setTimer(NEW_CONNECTION_WRITE_MS, () => this.#stampWritten());
    this.#request.observer?.onRequestSent?.();
  }

  onResponseStarted(): void {
    this.#stampWritten();
    this.#request.observer?.onResponseStarted?.();
  }

  /** A server that lets a session go has not failed, whatever the method: what it did not process may be sent again. */
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
    this.#end(undefined);
    this.#controller = undefined;
    this.#writtenUs = undefined;
    this.#scheduleEnter();
    return true;
  }

  /** A sink is told nothing before `Send` has returned, and undici is not called from inside its own round of sending. */
  #scheduleEnter(): void {
    // Cheaper than queueMicrotask, which makes an asynchronous resource for each call.
    RESOLVED.then(() => {
      if (this.#sink !== undefined) this.#enter();
    });
  }

  #watchUnread(): void {
    if (this.#hasHead && this.#grant !== undefined) this.#deps.unread.paused(this);
  }

  #enter(): void {
    const { host, role, path, method, call, record } = this.#request;
    // What an earlier attempt came to must not be taken for this one's, should it be refused.
    record.outcome = undefined;
    record.retryAfterMs = undefined;
    record.sentMs = undefined;
    record.queuedSinceUs = this.#deps.time.monotonicUs();
    const maxWaitMs = this.#maxWaitMs();
    try {
      const entry = this.#deps.gate.enter({
        host,
        role,
        path,
        method,
        weight: call.weight,
        resolver: call.resolver,
        service: call.service,
        maxWaitMs,
        maxWaitOption: maxWaitMs === call.maxWaitMs ? "maxWaitMs" : "deadlineMs",
        maxBreakerWaitMs: call.maxBreakerWaitMs,
        onWait: leaveQueue => {
          this.#leaveQueue = leaveQueue;
        },
      });
      // The callbacks run in the caller's asynchronous context, whoever makes room for it.
      if (!(entry instanceof Promise)) this.#granted(entry);
      else entry.then(grant => this.#granted(grant)).catch(error => this.#fail(error));
    } catch (error) {
      this.#fail(error);
    }
  }

  /**
   * A deadline is a bound for the line too: who cannot make it is told at once, and who gave nothing else is willing to
   * wait for as long. So is one that was let in before.
   */
  #maxWaitMs(): number | undefined {
    const { call, deadlineUs } = this.#request;
    if (call.deadlineMs === undefined && this.#unprocessed === 0) return call.maxWaitMs;
    const leftMs = Math.max(0, (deadlineUs - this.#deps.time.monotonicUs()) / 1000);
    return Math.min(call.maxWaitMs ?? leftMs, leftMs);
  }

  #granted(grant: Grant): void {
    this.#leaveQueue = undefined;
    this.#grant = grant;
    this.#request.record.waitedMs += grant.waitedMs;
    this.#request.record.slotWaitMs += grant.slotWaitMs;
    this.#request.record.queuedSinceUs = undefined;
    if (this.#sink === undefined) this.#end(undefined);
    else if (grant.jitterMs === 0) this.#dispatch();
    else this.#jitter = this.#deps.time.setTimer(grant.jitterMs, () => this.#afterJitter());
  }

  /** A probe has waited for its jitter. Its host may have asked for a pause meanwhile, and the timer may be late. */
  #afterJitter(): void {
    const { reason } = this.#deps.breakers.state(this.#request.host);
    if (reason === undefined || reason === "failures") {
      this.#dispatch();
      return;
    }
    this.#end(undefined);
    this.#enter();
  }

  #dispatch(): void {
    this.#jitter = undefined;
    const { options, origin, path, method, headers, body, record } = this.#request;
    record.attempts += 1;
    const sent = {
      ...options,
      origin,
      path,
      method,
      headers: headers as string[],
      body: body ?? null,
      // Both are in the path by now, or done further out.
      query: undefined,
      maxRedirections: 0,
    } as unknown as Dispatcher.DispatchOptions;
    this.#connectionsBefore = this.#deps.connections();
    try {
      if (this.#request.needsCallerContext || this.#unprocessed > 0)
        this.#request.runInCallerContext(() => this.#deps.wire.dispatch(sent, this));
      else this.#deps.wire.dispatch(sent, this);
    } catch (error) {
      // undici's own dispatchers tell the handler; one that was handed in may throw.
      this.#end(outcomeOfError(error));
      this.#fail(error);
    }
  }

  /** A failure and its cooldown are told at once; a success is one only when the body has come whole. */
  #reportHead(head: ResponseHead): void {
    const { record } = this.#request;
    const { outcome, retryAfterMs, announced } = hostFeedback(head, this.#deps.breakers, this.#deps.time);
    record.outcome = outcome;
    record.retryAfterMs = retryAfterMs;
    this.#grant?.recordResponse({ isThrottled: outcome.kind === "failure" && outcome.throttled, announced });
    if (outcome.kind !== "success") this.#grant?.report({ outcome, status: head.status, retryAfterMs });
  }

  /**
   * The caller has dropped it. A host that has answered well was well; one that was silent for most of a deadline had
   * its chance, and a caller with short deadlines must not be blind to a host that hangs.
   */
  #outcomeOfAbort(): Outcome {
    if (this.#hasHead) return this.#request.record.outcome ?? SUCCESS;
    if (!(this.#reason instanceof DeadlineExceededError) || this.#writtenUs === undefined) return { kind: "neutral" };
    const silentMs = (this.#deps.time.monotonicUs() - this.#writtenUs) / 1000;
    const isSilent = silentMs * 2 >= this.#reason.deadlineMs;
    return isSilent ? { kind: "failure", cause: "network", throttled: false } : { kind: "neutral" };
  }

  #stampWritten(): void {
    this.#stampTimer?.cancel();
    this.#stampTimer = undefined;
    this.#grant?.written();
  }

  #end(outcome: Outcome | undefined): void {
    this.#jitter?.cancel();
    this.#jitter = undefined;
    this.#deps.unread.resumed(this);
    const grant = this.#grant;
    if (grant === undefined) return;
    this.#grant = undefined;
    if (outcome !== undefined) grant.report({ outcome });
    if (this.#writtenUs === undefined) grant.giveBack();
    else if (this.#stampTimer === undefined) grant.release();
    else this.#deps.deferredStamps.release(grant, this.#unstampedMs());
    this.#stampTimer?.cancel();
    this.#stampTimer = undefined;
  }

  /** How long one that is dropped now goes on counting as being written. */
  #unstampedMs(): number {
    const sinceMs = (this.#deps.time.monotonicUs() - (this.#writtenUs ?? 0)) / 1000;
    return Math.max(0, NEW_CONNECTION_WRITE_MS - sinceMs);
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

import type { Duplex } from "node:stream";
import { errors } from "undici";
import type { RequestControl } from "../../core/cache/cache-control.ts";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import type { Timer } from "../../time/time.ts";
import type { ActiveRequest } from "../active-requests.ts";
import type { CacheStatus } from "../call-record.ts";
import { fieldLine } from "../headers.ts";
import { isRedirect } from "../stages/redirect-hop.ts";
import {
  DISCARDED_BYTES_MAX,
  DISCARDED_MS_MAX,
  type OutgoingRequest,
  type RequestHandle,
  type ResponseHead,
  type ResponseSink,
} from "../stages/stage.ts";
import { deliverCacheReply, headWithCacheStatus } from "./cache-reply.ts";
import type { CoalescedRequestDeps, ResendMode } from "./coalesced-request-deps.ts";
import { CollectedBody } from "./collected-body.ts";
import {
  type Fallback,
  type FallbackRules,
  isSameRules,
  type Revalidation,
  type ServedResponse,
} from "./revalidation.ts";
import { type SubscribedCall, type SubscribedRequest, Subscriber } from "./subscriber.ts";

const NO_BODY = Buffer.alloc(0);
/** Time for the body of a background revalidation. A server that sends single bytes must not hold its slot any longer. */
const REFRESH_BODY_MS_MAX = 60_000;

/**
 * One request in flight for all callers that send an identical one before it ends.
 *
 * The leader, which came first, gets the response while it arrives. The followers get it when it is complete, so a slow
 * reader delays no other caller, and the memory is bounded by the largest body that the cache stores. If a response cannot
 * be shared, only the leader gets it, and each follower sends its own request. An abort by one caller does not end the
 * request while another caller waits for it.
 */
export class CoalescedRequest implements ResponseSink, ActiveRequest, SubscribedRequest {
  readonly isCall = false;
  previousActive: ActiveRequest | undefined = undefined;
  nextActive: ActiveRequest | undefined = undefined;
  readonly #deps: CoalescedRequestDeps;
  readonly #request: OutgoingRequest;
  readonly #revalidation: Revalidation | undefined;
  #leader: Subscriber | undefined;
  /** True when a follower has become the leader: the request has the bounds of another caller. */
  #isPromoted = false;
  readonly #followers = new Set<Subscriber>();
  #handle: RequestHandle | undefined;
  #head: ResponseHead | undefined;
  /** When the head arrived, by the wall clock. */
  #receivedMs = 0;
  #isStorable = false;
  /** The body so far; undefined when the response cannot be shared. */
  #body: CollectedBody | undefined;
  #bytes = 0;
  /** True when the response is not needed any more: the rest of its body is read only to keep the connection. */
  #isDiscarding = false;
  #isOver = false;
  /** True for a background revalidation. */
  readonly #isBackground: boolean;
  /** True while a background revalidation may continue without subscribers. */
  #needsNoSubscriber: boolean;
  /** Bounds a body that no subscriber waits for: `bodyTimeoutMs` bounds only the time between two chunks. */
  #bodyTimer: Timer | undefined;

  constructor(
    deps: CoalescedRequestDeps,
    request: OutgoingRequest,
    revalidation: Revalidation | undefined,
    isBackground: boolean,
  ) {
    this.#deps = deps;
    this.#request = request;
    this.#revalidation = revalidation;
    this.#isBackground = isBackground;
    this.#needsNoSubscriber = isBackground;
  }

  begin(): void {
    // Later, because the queue cannot remove a request while it is adding it.
    this.#request.record.onWait = () => queueMicrotask(() => this.#releaseShorterWaits());
    this.#handle = this.#deps.next(this.#request, this);
  }

  addLeader(call: SubscribedCall): RequestHandle {
    this.#leader = new Subscriber(this, call);
    return this.#leader;
  }

  /**
   * True when its response may not have what a new request would get. Callers that joined before still share it. A long
   * body may end after the response has become stale.
   */
  isOutdatedFor(control: RequestControl): boolean {
    const { isOutdated, isReusable } = this.#deps;
    if (this.#head === undefined || !this.#isStorable) return isOutdated();
    return isOutdated() || !isReusable(this.#head, this.#receivedMs, control);
  }

  /**
   * Whether another request may join this one: when this one has been sent, or cannot wait longer than the other allows.
   * Not if the two judge responses differently (`outcome`), or if the deadline of this one ends the retries earlier.
   */
  mayJoin({ call, deadlineUs }: OutgoingRequest): boolean {
    const { record, call: own, deadlineUs: ownDeadlineUs } = this.#request;
    const { maxWaitMs, maxBreakerWaitMs = Number.POSITIVE_INFINITY, deadlineMs, outcome } = call;
    if (outcome !== own.outcome || (deadlineMs !== own.deadlineMs && ownDeadlineUs < deadlineUs)) return false;
    if (record.sentMs !== undefined) return true;
    if (maxBreakerWaitMs < (own.maxBreakerWaitMs ?? Number.POSITIVE_INFINITY)) return false;
    if (maxWaitMs === Number.POSITIVE_INFINITY) return true;
    return maxWaitMs === own.maxWaitMs && (own.deadlineMs === undefined || own.deadlineMs === deadlineMs);
  }

  /** Adds a caller that gets the response when it is complete. */
  addFollower(call: SubscribedCall): RequestHandle {
    const follower = new Subscriber(this, call);
    this.#followers.add(follower);
    return follower;
  }

  /** The caller has aborted. Before the response has begun, the next follower becomes the leader. */
  leave(subscriber: Subscriber, reason: unknown): void {
    const isLeader = subscriber === this.#leader;
    if (isLeader) this.#leader = undefined;
    this.#followers.delete(subscriber);
    if (this.#head === undefined) this.#leader ??= this.#promoted();
    if (isLeader && (this.#leader ?? this.#followers.size > 0)) this.#deps.onLeaderLeft(this.#leader?.request);
    if (this.#hasSubscribers || this.#needsNoSubscriber) this.updateBackpressure();
    else this.abort(reason);
  }

  /** Pauses the response for a slow leader, unless its body is collected to be stored or shared: that is bounded anyway. */
  updateBackpressure(): void {
    if (this.#head === undefined || this.#body !== undefined || this.#isDiscarding) return;
    if (this.#leader?.isPaused) this.#handle?.pause();
    else this.#handle?.resume();
  }

  abort(reason: unknown): void {
    this.#abort(reason ?? new errors.RequestAbortedError(), true);
  }

  #abort(error: unknown, isAborted = false): void {
    if (this.#isOver) return;
    this.#handle?.abort(error);
    this.#end(error, isAborted);
  }

  interim(head: ResponseHead): void {
    this.#leader?.sink.interim(head);
  }

  started(head: ResponseHead): void {
    this.#head = head;
    this.#receivedMs = this.#deps.time.wallMs();
    if (this.#revalidation !== undefined && this.#serveStored(this.#revalidation, head)) return;
    this.#isStorable = this.#deps.isStorable(head);
    const length = Number(fieldLine(head.headers["content-length"]) ?? 0);
    const isShared = this.#isStorable || this.#request.record.outcome?.kind === "failure";
    if (isShared && !(length > this.#deps.maxBytes)) this.#body = new CollectedBody();
    // A failure does not tell whether the next response can be shared.
    if (this.#isStorable || this.#body === undefined) this.#deps.onShareable(this.#body !== undefined, head);
    if (this.#body === undefined) this.#releaseFollowers(() => "unshared");
    else if (isRedirect({ status: head.status, location: fieldLine(head.headers["location"]) }))
      this.#redirectFollowers(head);
    if (this.#needsNoSubscriber)
      this.#bodyTimer = this.#deps.time.setTimer(REFRESH_BODY_MS_MAX, () => this.#onRefreshTimeout());
    if (this.#leader === undefined) {
      // A background revalidation whose response cannot be stored.
      if (this.#body === undefined) this.#discardBody();
      return;
    }
    // A follower that became the leader of a request in flight has sent nothing itself.
    const { record } = this.#leader.request;
    record.cacheStatus = record.attempts > 0 ? "miss" : "coalesced";
    this.#leader.sink.started(headWithCacheStatus(head, record.cacheStatus));
    // The leader may have paused before the head arrived.
    this.updateBackpressure();
  }

  data(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#isDiscarding) {
      if (this.#bytes > DISCARDED_BYTES_MAX) this.#abortBody();
      return;
    }
    // A copy, because the leader may change or transfer the bytes.
    this.#body?.add(this.#leader === undefined ? chunk : Buffer.from(chunk));
    this.#leader?.sink.data(chunk);
    if (this.#body === undefined || this.#bytes <= this.#deps.maxBytes) return;
    // Too long to store: from here on it is for the leader alone.
    this.#body = undefined;
    if (this.#head !== undefined) this.#deps.onShareable(false, this.#head);
    this.#releaseFollowers(() => "unshared");
    if (this.#leader === undefined) this.#abortBody();
    else this.updateBackpressure();
  }

  ended(trailers: HeaderFields, rawTrailers: unknown): void {
    const { status = 0, statusText = "", headers = {} } = this.#head ?? {};
    const chunks = this.#body?.chunks;
    if (chunks !== undefined && this.#head !== undefined) {
      if (this.#isStorable) this.#deps.store(this.#head, chunks);
      const body = this.#followers.size > 0 ? Buffer.concat(chunks) : undefined;
      this.#handOverFollowers(follower =>
        deliverCacheReply(follower.request, "coalesced", { status, statusText, headers }, body, follower.sink),
      );
    }
    const leader = this.#leader;
    this.#end();
    if (!this.#isDiscarding) leader?.sink.ended(trailers, rawTrailers);
  }

  failed(error: unknown): void {
    if (this.#isDiscarding) {
      this.#end(error);
      return;
    }
    const hasBegun = this.#head !== undefined;
    // A leader that has got the head cannot get another response.
    const begun = hasBegun ? this.#leader : undefined;
    if (hasBegun) this.#leader = undefined;
    const fallback = this.#hasSubscribers ? this.#revalidation?.onFailure(error) : undefined;
    if (this.#revalidation !== undefined && fallback !== undefined) {
      this.#serveUnconfirmed(this.#revalidation.rules, fallback);
      this.#end(error);
      begun?.sink.failed(error);
      return;
    }
    // A host that cannot be reached fails for all callers, and so does a body that breaks off: if each of them sent its own
    // request then, a host that breaks off every body would get one after the other. A refusal or an abort concerns this
    // request only.
    const failsForAll = hasBegun || this.#request.record.outcome?.kind === "failure";
    // A follower that leads now was not refused by its own bounds.
    if (this.#isPromoted && !failsForAll) this.#demoteLeader();
    const leader = begun ?? this.#leader;
    if (failsForAll) {
      const followers = [...this.#followers];
      this.#end(error);
      for (const { request, sink } of followers) {
        request.record.cacheStatus = "coalesced";
        sink.failed(error);
      }
    } else {
      // A caller that may wait as long is probably refused too. If they all shared a request again, then N callers would
      // be sent again N times.
      const { maxWaitMs } = this.#request.call;
      this.#releaseFollowers(({ call }) => (call.maxWaitMs === maxWaitMs ? "unshared" : "shared"));
      this.#end(error);
    }
    leader?.sink.failed(error);
  }

  upgraded(head: ResponseHead, socket: Duplex): void {
    const leader = this.#leader;
    this.#releaseFollowers(() => "unshared");
    this.#end();
    leader?.sink.upgraded(head, socket);
  }

  /** True when all subscribers got the stored response. */
  #serveStored(revalidation: Revalidation, head: ResponseHead): boolean {
    const { status } = head;
    if (status === 304) {
      const confirmed = revalidation.confirm(head);
      if (confirmed !== undefined) {
        if (!confirmed.isStorable) this.#releaseFollowers(() => "unshared");
        this.#serve("revalidated", confirmed);
        return this.#discardBody();
      }
      // The 304 confirms nothing that can be served. Without conditions the server cannot answer with another one.
      this.#demoteLeader();
      this.#releaseFollowers(() => "unconditional");
      return this.#discardBody();
    }
    const isServerError = status >= 500 || status === 429;
    const served = isServerError ? revalidation.onErrorStatus() : undefined;
    if (served === undefined) return false;
    this.#serveUnconfirmed(revalidation.rules, { cacheStatus: "stale", served });
    return this.#discardBody();
  }

  /**
   * Serves a fallback to the callers with the same rules. A caller that came later, when the time for stale responses was
   * over, is sent on its own.
   */
  #serveUnconfirmed(rules: FallbackRules, { cacheStatus, served }: Fallback): void {
    this.#deps.onJoinClosed();
    for (const subscriber of this.#subscribers()) {
      if (isSameRules(rules, subscriber.rules)) continue;
      if (subscriber === this.#leader) this.#leader = undefined;
      this.#followers.delete(subscriber);
      subscriber.switchTo(this.#deps.requestAgain(subscriber, "shared"));
    }
    this.#serve(cacheStatus, served);
  }

  #serve(cacheStatus: CacheStatus, { stored, body }: ServedResponse): void {
    // A background revalidation serves no caller, so its record shows only whether it succeeded.
    if (this.#isBackground && cacheStatus === "revalidated") this.#request.record.cacheStatus = cacheStatus;
    const leader = this.#leader;
    this.#leader = undefined;
    if (leader !== undefined)
      leader.switchTo(deliverCacheReply(leader.request, cacheStatus, stored, body, leader.sink));
    const shared = cacheStatus === "revalidated" ? "coalesced" : cacheStatus;
    this.#handOverFollowers(follower => deliverCacheReply(follower.request, shared, stored, body, follower.sink));
  }

  #discardBody(): true {
    this.#isDiscarding = true;
    this.#bodyTimer?.cancel();
    this.#bodyTimer = this.#deps.time.setTimer(DISCARDED_MS_MAX, () => this.#abortBody());
    this.#deps.onJoinClosed();
    return true;
  }

  /** No caller gets the rest of the body. */
  #abortBody(): void {
    this.#abort(new errors.RequestAbortedError());
  }

  #onRefreshTimeout(): void {
    this.#needsNoSubscriber = false;
    if (this.#hasSubscribers) return;
    const { host } = this.#request;
    this.#abort(
      new errors.BodyTimeoutError(`the refresh of a response of ${host} took longer than ${REFRESH_BODY_MS_MAX} ms`),
    );
  }

  /** A follower that does not read the body of a redirect goes on to the next hop, however long that body takes. */
  #redirectFollowers(head: ResponseHead): void {
    this.#deps.onJoinClosed();
    for (const follower of this.#followers) {
      const { request, sink } = follower;
      const { fetchCall, maxRedirections = 0 } = request.call;
      if (!(fetchCall?.discardsRedirects ?? maxRedirections > 0)) continue;
      this.#followers.delete(follower);
      follower.switchTo(deliverCacheReply(request, "coalesced", head, NO_BODY, sink));
    }
  }

  /** Sends the request of each follower on its own. */
  #releaseFollowers(howFor: (request: OutgoingRequest) => ResendMode): void {
    this.#deps.onJoinClosed();
    this.#handOverFollowers(follower => this.#deps.requestAgain(follower, howFor(follower.request)));
  }

  /**
   * A retry or a resent request waits in the queue for as long as its first caller allows. A caller that joined after the
   * request was sent, and would not be allowed to join now, is sent on its own, so that it is refused in time (law L4).
   */
  #releaseShorterWaits(): void {
    for (const subscriber of this.#subscribers()) {
      if (this.mayJoin(subscriber.request)) continue;
      this.leave(subscriber, undefined);
      subscriber.switchTo(this.#deps.requestAgain(subscriber, "requeued"));
    }
  }

  #handOverFollowers(handOver: (follower: Subscriber) => RequestHandle): void {
    const followers = [...this.#followers];
    this.#followers.clear();
    for (const follower of followers) follower.switchTo(handOver(follower));
  }

  get #hasSubscribers(): boolean {
    return this.#leader !== undefined || this.#followers.size > 0;
  }

  #subscribers(): readonly Subscriber[] {
    return this.#leader === undefined ? [...this.#followers] : [this.#leader, ...this.#followers];
  }

  #promoted(): Subscriber | undefined {
    for (const follower of this.#followers) {
      this.#followers.delete(follower);
      this.#isPromoted = true;
      return follower;
    }
    return undefined;
  }

  /** Before the response has begun, the leader can be sent on its own, as the followers can. */
  #demoteLeader(): void {
    const followers = this.#subscribers();
    this.#leader = undefined;
    this.#followers.clear();
    for (const follower of followers) this.#followers.add(follower);
  }

  #end(error?: unknown, isAborted = false): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#bodyTimer?.cancel();
    this.#leader = undefined;
    this.#followers.clear();
    this.#deps.onJoinClosed();
    this.#deps.onOver({ status: this.#head?.status, error, isAborted });
  }
}

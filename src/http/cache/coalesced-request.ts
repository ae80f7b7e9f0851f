import type { Duplex } from "node:stream";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import type { ActiveRequest } from "../active-requests.ts";
import type { CacheStatus } from "../call-record.ts";
import { fieldLine } from "../headers.ts";
import { DISCARDED_BYTES_MAX } from "../stages/resending-request.ts";
import type { OutgoingRequest, RequestHandle, ResponseHead, ResponseSink, SendRequest } from "../stages/stage.ts";
import { deliverCacheReply, headWithCacheStatus, type StoredHead } from "./cache-reply.ts";

/** An older answer that a request is to confirm, or that stands in for its own. */
export interface Revalidation {
  /** The request that asks whether it still holds. */
  readonly conditional: OutgoingRequest;
  /** The answer as it may be served now; undefined when it has vanished. */
  readonly serve: () => { readonly stored: StoredHead; readonly body: Buffer } | undefined;
  /** True when it may be served although the server cannot be asked. */
  readonly mayServeOnError: boolean;
  /** What a 304 makes of it; undefined when the 304 is about another representation. */
  readonly confirm: (head: ResponseHead) => { readonly stored: StoredHead; readonly body: Buffer } | undefined;
}

export interface CoalescedRequestDeps {
  readonly next: SendRequest;
  readonly maxBytes: number;
  readonly isStorable: (head: ResponseHead) => boolean;
  readonly store: (head: ResponseHead, body: readonly Buffer[]) => void;
  /** Somebody has to ask again, for himself alone where answers cannot be shared. */
  readonly requestAgain: (request: OutgoingRequest, sink: ResponseSink, isUnshared: boolean) => RequestHandle;
  /** It was of no use to those who waited. */
  readonly onUnshareable: () => void;
  /** No newcomer is to wait for this one any more. */
  readonly onJoinClosed: () => void;
  /** Nothing more will come of it. */
  readonly onOver: () => void;
}

/** Somebody who waits for an answer under way. */
class Subscriber implements RequestHandle {
  readonly request: OutgoingRequest;
  readonly sink: ResponseSink;
  isPaused = false;
  #coalesced: CoalescedRequest | undefined;
  /** What steers it once it has left the fill. */
  #ownHandle: RequestHandle | undefined;

  constructor(coalesced: CoalescedRequest, request: OutgoingRequest, sink: ResponseSink) {
    this.#coalesced = coalesced;
    this.request = request;
    this.sink = sink;
  }

  switchTo(handle: RequestHandle): void {
    this.#coalesced = undefined;
    this.#ownHandle = handle;
    if (this.isPaused) handle.pause();
  }

  pause(): void {
    this.isPaused = true;
    this.#ownHandle?.pause();
    this.#coalesced?.updateBackpressure();
  }

  resume(): void {
    this.isPaused = false;
    this.#ownHandle?.resume();
    this.#coalesced?.updateBackpressure();
  }

  abort(reason: unknown): void {
    this.#ownHandle?.abort(reason);
    this.#coalesced?.leave(this, reason);
    this.#coalesced = undefined;
  }
}

/**
 * One request on its way for everybody who asks the same meanwhile.
 *
 * The first one sees the answer as it comes. The others get it whole when it is there: so one who reads slowly, or not
 * at all, holds up nobody, and what must be kept in memory is bounded by what the cache would keep anyway. An answer
 * that cannot be shared is the first one's alone, and the others go their own ways. Nobody's abort ends what somebody
 * else still waits for.
 */
export class CoalescedRequest implements ResponseSink, ActiveRequest {
  previousActive: ActiveRequest | undefined = undefined;
  nextActive: ActiveRequest | undefined = undefined;
  readonly #deps: CoalescedRequestDeps;
  readonly #request: OutgoingRequest;
  readonly #revalidation: Revalidation | undefined;
  #leader: Subscriber | undefined;
  readonly #followers = new Set<Subscriber>();
  #handle: RequestHandle | undefined;
  #head: ResponseHead | undefined;
  #isStorable = false;
  /** What has come of an answer that can be shared. */
  #chunks: Buffer[] | undefined;
  #bytes = 0;
  #isDiscarding = false;
  #isOver = false;
  /** It goes on even when nobody waits for it. */
  readonly #isBackground: boolean;

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
  }

  begin(): void {
    this.#handle = this.#deps.next(this.#request, this);
  }

  /** The answer as it comes, for the one it is asked for; `request` is his own, without our conditions. */
  addLeader(request: OutgoingRequest, sink: ResponseSink): RequestHandle {
    this.#leader = new Subscriber(this, request, sink);
    return this.#leader;
  }

  /** Whether somebody may wait for this one: it is on the wire, or he is as patient. A deadline is patience, too. */
  mayJoin({ call }: OutgoingRequest): boolean {
    const { record, call: own } = this.#request;
    const { maxWaitMs, deadlineMs } = call;
    if (record.sentMs !== undefined || maxWaitMs === Number.POSITIVE_INFINITY) return true;
    return maxWaitMs === own.maxWaitMs && (own.deadlineMs === undefined || own.deadlineMs === deadlineMs);
  }

  /** The answer when it is there. */
  join(request: OutgoingRequest, sink: ResponseSink): RequestHandle {
    const follower = new Subscriber(this, request, sink);
    this.#followers.add(follower);
    return follower;
  }

  leave(one: Subscriber, reason: unknown): void {
    if (one === this.#leader) this.#leader = undefined;
    this.#followers.delete(one);
    if (this.#head === undefined) this.#leader ??= this.#nextLeader();
    if (this.#leader !== undefined || this.#followers.size > 0 || this.#isBackground) this.updateBackpressure();
    else this.abort(reason);
  }

  /** Only an answer that is not kept is held back for its reader; one that is kept is bounded. */
  updateBackpressure(): void {
    if (this.#head === undefined || this.#chunks !== undefined || this.#isDiscarding) return;
    if (this.#leader?.isPaused) this.#handle?.pause();
    else this.#handle?.resume();
  }

  abort(reason: unknown): void {
    if (this.#isOver) return;
    this.#handle?.abort(reason);
    this.#end();
  }

  interim(head: ResponseHead): void {
    this.#leader?.sink.interim(head);
  }

  started(head: ResponseHead): void {
    this.#head = head;
    if (this.#revalidation !== undefined && this.#serveStored(this.#revalidation, head)) return;
    this.#isStorable = this.#deps.isStorable(head);
    const length = Number(fieldLine(head.headers["content-length"]) ?? 0);
    const isShared = this.#isStorable || this.#request.record.outcome?.kind === "failure";
    if (isShared && !(length > this.#deps.maxBytes)) this.#chunks = [];
    else {
      this.#deps.onUnshareable();
      this.#releaseFollowers(true);
    }
    if (this.#leader === undefined) {
      // Asked in the background, and nothing to keep.
      if (this.#chunks === undefined) this.#discardBody();
      return;
    }
    this.#leader.request.record.cacheStatus = "miss";
    this.#leader.sink.started(headWithCacheStatus(head, "miss"));
    // Held back while nobody knew what would come.
    this.updateBackpressure();
  }

  data(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#isDiscarding) {
      if (this.#bytes > DISCARDED_BYTES_MAX) this.abort(undefined);
      return;
    }
    if (this.#chunks !== undefined) this.#chunks.push(chunk);
    this.#leader?.sink.data(chunk);
    if (this.#chunks === undefined || this.#bytes <= this.#deps.maxBytes) return;
    // Too long to keep: from here on it is its reader's alone.
    this.#chunks = undefined;
    this.#deps.onUnshareable();
    this.#releaseFollowers(true);
    if (this.#leader === undefined) this.abort(undefined);
    else this.updateBackpressure();
  }

  ended(trailers: HeaderFields, rawTrailers: unknown): void {
    const { status = 0, statusText = "", headers = {} } = this.#head ?? {};
    const chunks = this.#chunks;
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
      this.#end();
      return;
    }
    if (
      this.#head === undefined &&
      this.#revalidation?.mayServeOnError &&
      this.#serve("stale", this.#revalidation.serve())
    ) {
      this.#end();
      return;
    }
    const leader = this.#leader;
    // A host that cannot be reached is the same for all. A refusal, an abort or a break is this request's own.
    const isForAll = this.#head === undefined && this.#request.record.outcome?.kind === "failure";
    if (isForAll) {
      const followers = [...this.#followers];
      this.#end();
      for (const { sink } of followers) sink.failed(error);
    } else {
      this.#releaseFollowers(false);
      this.#end();
    }
    leader?.sink.failed(error);
  }

  upgraded(head: ResponseHead, socket: Duplex): void {
    const leader = this.#leader;
    this.#releaseFollowers(true);
    this.#end();
    leader?.sink.upgraded(head, socket);
  }

  /** True when everybody has got the older answer. */
  #serveStored(revalidation: Revalidation, head: ResponseHead): boolean {
    const { status } = head;
    if (status === 304) {
      const confirmed = revalidation.confirm(head);
      if (this.#serve("revalidated", confirmed)) return this.#discardBody();
      // The 304 is about something that we do not have: it has to be asked for without conditions.
      const leader = this.#leader;
      this.#leader = undefined;
      if (leader !== undefined) this.#followers.add(leader);
      this.#releaseFollowers(false);
      return this.#discardBody();
    }
    const isServerError = status >= 500 || status === 429;
    return (
      isServerError && revalidation.mayServeOnError && this.#serve("stale", revalidation.serve()) && this.#discardBody()
    );
  }

  #serve(cacheStatus: CacheStatus, answer: ReturnType<Revalidation["serve"]>): boolean {
    if (answer === undefined) return false;
    const { stored, body } = answer;
    const leader = this.#leader;
    this.#leader = undefined;
    if (leader !== undefined)
      leader.switchTo(deliverCacheReply(leader.request, cacheStatus, stored, body, leader.sink));
    this.#handOverFollowers(follower => deliverCacheReply(follower.request, "coalesced", stored, body, follower.sink));
    return true;
  }

  #discardBody(): true {
    this.#isDiscarding = true;
    this.#deps.onJoinClosed();
    return true;
  }

  /** The others ask again. */
  #releaseFollowers(isUnshared: boolean): void {
    this.#deps.onJoinClosed();
    this.#handOverFollowers(follower => this.#deps.requestAgain(follower.request, follower.sink, isUnshared));
  }

  #handOverFollowers(handOver: (follower: Subscriber) => RequestHandle): void {
    const followers = [...this.#followers];
    this.#followers.clear();
    for (const follower of followers) follower.switchTo(handOver(follower));
  }

  #nextLeader(): Subscriber | undefined {
    for (const follower of this.#followers) {
      this.#followers.delete(follower);
      return follower;
    }
    return undefined;
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#leader = undefined;
    this.#followers.clear();
    this.#deps.onJoinClosed();
    this.#deps.onOver();
  }
}

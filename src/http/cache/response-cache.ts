import type { RequestControl } from "../../core/cache/cache-control.ts";
import { entryFacts } from "../../core/cache/freshness.ts";
import { decideReuse } from "../../core/cache/reuse.ts";
import type { Time } from "../../time/time.ts";
import type { ActiveRequests } from "../active-requests.ts";
import type { InnerCallOptions } from "../call-options.ts";
import { CallRecord } from "../call-record.ts";
import { withoutHeaders } from "../headers.ts";
import type { CallEnd } from "../request-telemetry.ts";
import type { CallerIdentity } from "../stages/caller-identity.ts";
import { withDeadlineAsMaxWait } from "../stages/retry.ts";
import type { OutgoingRequest, RequestHandle, ResponseSink, SendRequest } from "../stages/stage.ts";
import { deliverCacheReply, deliverNotCached } from "./cache-reply.ts";
import type { CacheStore, FoundResponse } from "./cache-store.ts";
import { CoalescedRequest } from "./coalesced-request.ts";
import { type CompletingDeps, completing } from "./completing-request.ts";
import { hasRequestedBytes } from "./partial-response.ts";
import { type FallbackRules, type Revalidation, revalidationOf } from "./revalidation.ts";
import { coalescingKey } from "./selection.ts";
import { type StoredResponses, sendingFacts } from "./stored-responses.ts";
import { UnsafeResponse } from "./unsafe-response.ts";

export interface ResponseCacheDeps {
  readonly stored: StoredResponses;
  readonly time: Time;
  readonly activeRequests: ActiveRequests;
  readonly next: SendRequest;
  /**
   * Adds the identification (User-Agent, API key) to requests after the cache stage. The cache also selects stored
   * responses by it. A reload replaces it.
   */
  readonly callerIdentity: () => CallerIdentity;
  /** Called when a background refresh begins, which is a call of the hub itself. The returned function is called at its end. */
  readonly onRefresh: (request: OutgoingRequest) => (end: CallEnd) => void;
}

/** The stored responses that can be used for a request that is sent. */
interface UsableStored {
  /** A stored response that the server is asked to confirm. */
  readonly revalidation?: Revalidation | undefined;
  /** A stored part that the response may complete. */
  readonly part?: FoundResponse | undefined;
}

/** The coalescing key of a request, and whether identical requests may join it. */
interface Joining {
  readonly key: string;
  readonly mayBeJoined: boolean;
}

/** The longest time that a background refresh waits for its rate limits, slots and circuits. */
const REFRESH_WAIT_MS_MAX = 60_000;
const RANGE_HEADERS: ReadonlySet<string> = new Set(["range", "if-range"]);
/** Bounds the memory for keys whose responses cannot be shared. */
const UNSHAREABLE_KEYS_MAX = 1000;

/** Serves, stores and revalidates responses, and coalesces identical requests in flight. */
export class ResponseCache {
  readonly #store: CacheStore;
  readonly #stored: StoredResponses;
  readonly #time: Time;
  readonly #activeRequests: ActiveRequests;
  readonly #next: SendRequest;
  readonly #callerIdentity: ResponseCacheDeps["callerIdentity"];
  readonly #onRefresh: ResponseCacheDeps["onRefresh"];
  readonly #completingDeps: CompletingDeps;
  /** Requests in flight that identical requests may join, by coalescing key. */
  readonly #coalesced = new Map<string, CoalescedRequest>();
  /** Keys whose last response could not be shared: their next requests do not wait for each other. */
  readonly #unshareableKeys = new Set<string>();

  constructor({ stored, time, activeRequests, next, callerIdentity, onRefresh }: ResponseCacheDeps) {
    this.#callerIdentity = callerIdentity;
    this.#onRefresh = onRefresh;
    this.#store = stored.store;
    this.#stored = stored;
    this.#time = time;
    this.#activeRequests = activeRequests;
    this.#next = next;
    this.#completingDeps = { time, next, onWrongLength: request => stored.remove(request) };
  }

  /**
   * Serves a stored response, or sends the request. `control` is its parsed Cache-Control.
   * @param mayShare whether it may join an identical request or be joined
   */
  send(request: OutgoingRequest, control: RequestControl, sink: ResponseSink, mayShare = true): RequestHandle {
    const found = control.ignoresStored ? undefined : this.#stored.find(request);
    if (found === undefined) return this.#forward(request, control, sink, NOTHING_STORED, mayShare);
    if (!hasRequestedBytes(request, found)) return this.#forward(request, control, sink, { part: found }, mayShare);
    const verdict = decideReuse(this.#stored.factsOf(found), control, this.#time.wallMs());
    if (verdict.kind === "revalidate") {
      const revalidation = this.#revalidationOf(request, control, found, verdict);
      return this.#forward(request, control, sink, { revalidation }, mayShare);
    }
    const body = found.body();
    // Another process has evicted it since it was found.
    if (body === undefined) return this.#forward(request, control, sink, NOTHING_STORED, mayShare);
    const isFresh = verdict.kind === "fresh";
    if (verdict.kind === "stale-while-revalidate" && !control.onlyIfCached)
      this.#revalidateInBackground(request, control, found);
    return deliverCacheReply(request, isFresh ? "hit" : "stale", this.#stored.withAge(found), body, sink);
  }

  /**
   * Wraps the sink of a request that bypasses the cache. If the request is unsafe and succeeds, the stored responses that it
   * makes invalid are removed.
   */
  invalidatingSink(request: OutgoingRequest, control: RequestControl, sink: ResponseSink): ResponseSink {
    const { method, role, record } = request;
    if (method === "GET" || method === "HEAD" || method === "OPTIONS") return sink;
    const requestedMs = this.#time.wallMs();
    let { invalidations } = this.#stored;
    return new UnsafeResponse(
      {
        maxBytes: this.#store.maxEntryBytes,
        invalidate: head => {
          this.#stored.invalidate(request, head);
          invalidations = this.#stored.invalidations;
        },
        isStorable: head => role !== "artifact" && this.#stored.isStorable(request, head, control),
        store: (head, chunks) =>
          this.#stored.put(request, head, chunks, sendingFacts(record, requestedMs, invalidations)),
      },
      sink,
    );
  }

  #forward(
    request: OutgoingRequest,
    control: RequestControl,
    sink: ResponseSink,
    known: UsableStored,
    mayShare: boolean,
  ): RequestHandle {
    if (control.onlyIfCached) return deliverNotCached(request, sink);
    // The response to a HEAD has no body that could be stored for a GET. It may confirm a stored one.
    const isHead = request.method === "HEAD";
    if (isHead && known.revalidation === undefined) return this.#next(request, sink);
    const key = coalescingKey(request, this.#callerIdentity());
    if (isHead) return this.#startCoalesced(request, control, sink, known, { key, mayBeJoined: false });
    const pending = mayShare ? this.#coalesced.get(key) : undefined;
    if (pending === undefined || pending.isOutdatedFor(control) || control.noCache || control.ignoresStored) {
      const mayBeJoined = mayShare && !this.#unshareableKeys.has(key);
      return this.#startCoalesced(request, control, sink, known, { key, mayBeJoined });
    }
    // A request that may not wait as long as the pending one is sent on its own, so that it is refused in time.
    return pending.mayJoin(request)
      ? pending.addFollower({ request, control, sink, rules: known.revalidation?.rules })
      : this.#startCoalesced(request, control, sink, known, { key, mayBeJoined: false });
  }

  #startCoalesced(
    request: OutgoingRequest,
    control: RequestControl,
    sink: ResponseSink,
    known: UsableStored,
    joining: Joining,
  ): RequestHandle {
    const coalesced = this.#createCoalesced(request, control, known, joining);
    const handle = coalesced.addLeader({ request, control, sink, rules: known.revalidation?.rules });
    coalesced.begin();
    return handle;
  }

  /** At most one background request per key, however many callers were served the stale response. */
  #revalidateInBackground(request: OutgoingRequest, control: RequestControl, found: FoundResponse): void {
    // A part could not replace a stored complete response.
    const isPart = found.status === 206;
    const background: OutgoingRequest = {
      ...request,
      call: withRefreshBounds(request.call),
      // The response to a HEAD could not replace the stored body.
      method: "GET",
      headers: isPart ? request.headers : withoutHeaders(request.headers, name => RANGE_HEADERS.has(name)),
      cause: "refresh",
      startedUs: this.#time.monotonicUs(),
      signalSinceUs: undefined,
      record: new CallRecord(),
      observer: undefined,
    };
    const key = coalescingKey(background, this.#callerIdentity());
    if (this.#coalesced.has(key)) return;
    const rules = { mayServeOnError: true, mayServeDisconnected: true };
    const revalidation = this.#revalidationOf(background, control, found, rules);
    const onEnd = this.#onRefresh(background);
    this.#createCoalesced(background, control, { revalidation }, { key, mayBeJoined: true }, onEnd).begin();
  }

  #createCoalesced(
    request: OutgoingRequest,
    control: RequestControl,
    { revalidation, part }: UsableStored,
    { key, mayBeJoined }: Joining,
    onBackgroundEnd?: (end: CallEnd) => void,
  ): CoalescedRequest {
    const requestedMs = this.#time.wallMs();
    const { invalidations } = this.#stored;
    const sent = revalidation?.conditional ?? withOwnRecord(request);
    const coalesced = new CoalescedRequest(
      {
        time: this.#time,
        next: part === undefined ? this.#next : completing(part, this.#completingDeps),
        maxBytes: this.#store.maxEntryBytes,
        isStorable: head => this.#stored.isStorable(sent, head, control),
        store: (head, chunks) =>
          this.#stored.put(request, head, chunks, sendingFacts(sent.record, requestedMs, invalidations)),
        isOutdated: () => this.#stored.isInvalidatedSince(request, invalidations),
        isReusable: ({ status, headers }, receivedMs, of) => {
          const facts = entryFacts({ status, headers, receivedMs, requestedMs: sent.record.sentMs ?? requestedMs });
          return decideReuse(facts, of, this.#time.wallMs()).kind !== "revalidate";
        },
        requestAgain: (call, how) => {
          const again =
            how === "requeued" ? this.#asRetry(call.request) : this.#withRemainingWait(call.request, sent.record);
          return how === "unconditional"
            ? this.#forward(again, call.control, call.sink, NOTHING_STORED, true)
            : this.send(again, call.control, call.sink, how !== "unshared");
        },
        onShareable: (isShareable, head) => {
          if (request.method === "HEAD") return;
          this.#markShareable(key, isShareable);
          const mayHaveStored = revalidation !== undefined || part !== undefined || control.ignoresStored;
          if (!isShareable && mayHaveStored) this.#stored.supersede(sent, head);
        },
        onJoinClosed: () => {
          if (mayBeJoined && this.#coalesced.get(key) === coalesced) this.#coalesced.delete(key);
        },
        onLeaderLeft: leader => sent.record.handOver(leader?.record, this.#time.monotonicUs()),
        onOver: end => {
          this.#activeRequests.delete(coalesced);
          onBackgroundEnd?.(end);
        },
      },
      sent,
      revalidation,
      onBackgroundEnd !== undefined,
    );
    if (mayBeJoined) this.#coalesced.set(key, coalesced);
    this.#activeRequests.add(coalesced);
    return coalesced;
  }

  /**
   * A follower that is sent on its own. If the shared request was still queued, the time since the follower's start
   * counts as its own time in the queue, so less of its `maxWaitMs` and `maxBreakerWaitMs` is left (law L4).
   */
  #withRemainingWait(follower: OutgoingRequest, { sentMs, creditedCall }: CallRecord): OutgoingRequest {
    const again = { ...follower, needsCallerContext: true };
    const { maxWaitMs, maxBreakerWaitMs } = follower.call;
    if (sentMs !== undefined || (maxWaitMs ?? maxBreakerWaitMs) === undefined) return again;
    const waitedMs = (this.#time.monotonicUs() - follower.startedUs) / 1000;
    const breakerWaitMs = Math.min(waitedMs, creditedCall.breakerWaitMs);
    const bounds = {
      maxWaitMs: remainingMs(maxWaitMs, waitedMs),
      maxBreakerWaitMs: remainingMs(maxBreakerWaitMs, breakerWaitMs),
    };
    return { ...again, call: { ...follower.call, ...bounds } };
  }

  /** A follower whose shared request was sent has not waited in the queue, and is bounded like a retry of its own. */
  #asRetry(follower: OutgoingRequest): OutgoingRequest {
    return { ...withDeadlineAsMaxWait(follower, this.#time.monotonicUs()), needsCallerContext: true };
  }

  #markShareable(key: string, isShareable: boolean): void {
    if (isShareable) {
      this.#unshareableKeys.delete(key);
      return;
    }
    if (this.#unshareableKeys.size >= UNSHAREABLE_KEYS_MAX) this.#unshareableKeys.clear();
    this.#unshareableKeys.add(key);
  }

  #revalidationOf(
    request: OutgoingRequest,
    control: RequestControl,
    found: FoundResponse,
    rules: FallbackRules,
  ): Revalidation {
    return revalidationOf(this.#stored, withOwnRecord(request), control, found, rules, this.#time.wallMs());
  }
}

const NOTHING_STORED: UsableStored = Object.freeze({});

/**
 * The shared request has a record of its own, because it may outlive the call of its first leader. Waits and attempts are
 * credited to the call that leads it.
 */
function withOwnRecord(request: OutgoingRequest): OutgoingRequest {
  // A refresh has no caller.
  if (request.cause === "refresh") return request;
  const record = new CallRecord();
  record.creditedCall = request.record;
  return { ...request, record };
}

/** No caller waits for a refresh in the queue, so it must not keep a hub open, or a process alive, as long as a call may. */
function withRefreshBounds(call: InnerCallOptions): InnerCallOptions {
  const { maxWaitMs, maxBreakerWaitMs } = call;
  const atMost = (boundMs: number | undefined) => boundMs && Math.min(boundMs, REFRESH_WAIT_MS_MAX);
  return { ...call, maxWaitMs: atMost(maxWaitMs), maxBreakerWaitMs: atMost(maxBreakerWaitMs) };
}

function remainingMs(boundMs: number | undefined, usedMs: number): number | undefined {
  return boundMs === undefined ? undefined : Math.max(0, boundMs - usedMs);
}

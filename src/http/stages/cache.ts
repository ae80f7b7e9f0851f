import { type RequestControl, requestControl, responseControl } from "../../core/cache/cache-control.ts";
import { ageMs, type EntryFacts, entryFacts } from "../../core/cache/freshness.ts";
import { decideReuse } from "../../core/cache/reuse.ts";
import { isStorable } from "../../core/cache/storability.ts";
import {
  freshened,
  invalidatedUrls,
  isSameRepresentation,
  revalidationHeaders,
  storedHeaders,
  varyKeyOf,
  varyNames,
} from "../../core/cache/stored-fields.ts";
import type { Time } from "../../time/time.ts";
import type { ActiveRequests } from "../active-requests.ts";
import { deliverCacheReply, type StoredHead } from "../cache/cache-reply.ts";
import { type CacheStore, type FoundResponse, isVariant, type StoredResponse } from "../cache/cache-store.ts";
import { CoalescedRequest, type Revalidation } from "../cache/coalesced-request.ts";
import { CallRecord } from "../call-record.ts";
import { joinedHeader, withHeaders } from "../headers.ts";
import { withRewrittenHead } from "./rewritten-head.ts";
import type { OutgoingRequest, RequestHandle, ResponseHead, ResponseSink, SendRequest } from "./stage.ts";

export interface CacheDeps {
  /** Undefined for none: then only `offline` and `only-if-cached` are looked at. */
  readonly store: CacheStore | undefined;
  readonly time: Time;
  readonly activeRequests: ActiveRequests;
}

/** Who makes conditions himself, or wants a part, talks to the server and not to us. */
const CONDITIONAL_HEADERS: ReadonlySet<string> = new Set([
  "range",
  "if-match",
  "if-none-match",
  "if-modified-since",
  "if-unmodified-since",
  "if-range",
]);
/** What one caller may see another must not get, whether the server says `Vary` or not. */
const ALWAYS_VARY = ["authorization", "cookie"] as const;
const NOT_CACHED: StoredHead = {
  status: 504,
  statusText: "Gateway Timeout",
  headers: { "content-type": "text/plain" },
};
const NOT_CACHED_BODY = Buffer.from("docstokg: not in the cache, and the network was not to be asked\n");
/** As many answers that could not be shared are remembered, so that nobody waits for the next one in vain. */
const UNSHAREABLE_KEYS_MAX = 1000;

/**
 * A private HTTP cache (RFC 9111) above everything that costs: a hit takes no token, no slot and no notice of the
 * breaker, and is served while the host is cut off. Identical requests under way are one request.
 */
export function cacheStage(deps: CacheDeps, next: SendRequest): SendRequest {
  const { store } = deps;
  const cache = store && new ResponseCache(store, deps, next);
  return (request, sink) => {
    const { headers, call } = request;
    const given = requestControl(joinedHeader(headers, "cache-control"), joinedHeader(headers, "pragma"));
    // Who is offline takes what there is, as RFC 9111 permits when disconnected.
    const control = call.offline ? { ...given, onlyIfCached: true, maxStaleS: Number.POSITIVE_INFINITY } : given;
    if (cache !== undefined && mayUseCache(request, control)) return cache.send(request, control, sink);
    if (control.onlyIfCached) return deliverCacheReply(request, "offline", NOT_CACHED, NOT_CACHED_BODY, sink);
    return next(request, cache === undefined ? sink : cache.withInvalidation(request, sink));
  };
}

class ResponseCache {
  readonly #store: CacheStore;
  readonly #time: Time;
  readonly #activeRequests: ActiveRequests;
  readonly #next: SendRequest;
  /** Requests that somebody else may join, by all that makes them the same. */
  readonly #coalesced = new Map<string, CoalescedRequest>();
  readonly #unshareableKeys = new Set<string>();
  readonly #facts = new WeakMap<StoredResponse, EntryFacts>();

  constructor(store: CacheStore, { time, activeRequests }: CacheDeps, next: SendRequest) {
    this.#store = store;
    this.#time = time;
    this.#activeRequests = activeRequests;
    this.#next = next;
  }

  send(request: OutgoingRequest, control: RequestControl, sink: ResponseSink): RequestHandle {
    const found = this.#match(request);
    const verdict = found && decideReuse(this.#factsOf(found), control, this.#time.wallMs());
    if (found === undefined || verdict === undefined) return this.#forward(request, control, sink, undefined);
    if (verdict.kind === "revalidate") {
      return this.#forward(request, control, sink, this.#revalidationOf(request, found, verdict.mayServeOnError));
    }
    const body = found.body();
    // It vanished between two looks: another process has made room.
    if (body === undefined) return this.#forward(request, control, sink, undefined);
    const isFresh = verdict.kind === "fresh";
    if (verdict.kind === "stale-while-revalidate" && !control.onlyIfCached)
      this.#revalidateInBackground(request, control, found);
    return deliverCacheReply(request, isFresh ? "hit" : "stale", this.#aged(found), body, sink);
  }

  /** Forgets what a request that changes things has changed. */
  withInvalidation(request: OutgoingRequest, sink: ResponseSink): ResponseSink {
    const { method, origin, path } = request;
    if (method === "GET" || method === "HEAD" || method === "OPTIONS") return sink;
    return withRewrittenHead(sink, head => {
      for (const url of invalidatedUrls(method, head.status, `${origin}${path}`, head.headers)) this.#store.remove(url);
      return head;
    });
  }

  #forward(
    request: OutgoingRequest,
    control: RequestControl,
    sink: ResponseSink,
    revalidation: Revalidation | undefined,
  ): RequestHandle {
    if (control.onlyIfCached) return deliverCacheReply(request, "offline", NOT_CACHED, NOT_CACHED_BODY, sink);
    // A HEAD has no body to keep, and its answer is no answer to a GET.
    if (request.method !== "GET") return this.#next(request, sink);
    const key = coalescingKey(request);
    const activeRequests = this.#coalesced.get(key);
    if (activeRequests === undefined || control.noCache) {
      return this.#startCoalesced(
        request,
        control,
        sink,
        revalidation,
        this.#unshareableKeys.has(key) ? undefined : key,
      );
    }
    // Who may not wait as long as that one asks for himself, and is told at once if he would have to.
    return activeRequests.mayJoin(request)
      ? activeRequests.join(request, sink)
      : this.#startCoalesced(request, control, sink, revalidation, undefined);
  }

  /** `key`: by which others may join. */
  #startCoalesced(
    request: OutgoingRequest,
    control: RequestControl,
    sink: ResponseSink,
    revalidation: Revalidation | undefined,
    key: string | undefined,
  ): RequestHandle {
    const coalesced = this.#createCoalesced(request, control, revalidation, { key });
    const handle = coalesced.addLeader(request, sink);
    coalesced.begin();
    return handle;
  }

  /** One request in the background, however many were served the stale answer meanwhile. */
  #revalidateInBackground(request: OutgoingRequest, control: RequestControl, found: FoundResponse): void {
    const key = coalescingKey(request);
    if (this.#coalesced.has(key)) return;
    const own = { ...request, record: new CallRecord(), observer: undefined };
    this.#createCoalesced(own, control, this.#revalidationOf(own, found, true), { key, isBackground: true }).begin();
  }

  #createCoalesced(
    request: OutgoingRequest,
    control: RequestControl,
    revalidation: Revalidation | undefined,
    { key, isBackground = false }: { readonly key: string | undefined; readonly isBackground?: boolean },
  ): CoalescedRequest {
    const requestedMs = this.#time.wallMs();
    const sent = revalidation === undefined ? request : revalidation.conditional;
    const coalesced = new CoalescedRequest(
      {
        next: this.#next,
        maxBytes: this.#store.maxEntryBytes,
        isStorable: head => isStorable({ ...this.#dated(head), method: sent.method, requestControl: control }),
        store: (head, body) => {
          const stored = this.#storedOf(request, head, sent.record.sentMs ?? requestedMs);
          this.#store.put(urlOf(request), stored, body);
        },
        requestAgain: (one, sink, isUnshared) => {
          const forwarded = this.#withRemainingWait(one, sent.record.sentMs !== undefined);
          return isUnshared
            ? this.#startCoalesced(forwarded, control, sink, undefined, undefined)
            : this.send(forwarded, control, sink);
        },
        onUnshareable: () => this.#markUnshareable(key),
        onJoinClosed: () => {
          if (key !== undefined && this.#coalesced.get(key) === coalesced) this.#coalesced.delete(key);
        },
        onOver: () => this.#activeRequests.delete(coalesced),
      },
      sent,
      revalidation,
      isBackground,
    );
    if (key !== undefined) this.#coalesced.set(key, coalesced);
    this.#activeRequests.add(coalesced);
    return coalesced;
  }

  /**
   * Somebody who has waited for another's request and goes his own way. Who waited in line with it has that much less
   * left of his own bound (law L4); waiting for an answer is no waiting in line.
   */
  #withRemainingWait(one: OutgoingRequest, wasSent: boolean): OutgoingRequest {
    const { call, startedUs } = one;
    if (wasSent || call.maxWaitMs === undefined) return { ...one, needsCallerContext: true };
    const waitedMs = (this.#time.monotonicUs() - startedUs) / 1000;
    return { ...one, needsCallerContext: true, call: { ...call, maxWaitMs: Math.max(0, call.maxWaitMs - waitedMs) } };
  }

  #markUnshareable(key: string | undefined): void {
    if (key === undefined) return;
    if (this.#unshareableKeys.size >= UNSHAREABLE_KEYS_MAX) this.#unshareableKeys.clear();
    this.#unshareableKeys.add(key);
  }

  #revalidationOf(request: OutgoingRequest, found: FoundResponse, mayServeOnError: boolean): Revalidation {
    const url = urlOf(request);
    const requestedMs = this.#time.wallMs();
    const answer = (stored: StoredHead) => {
      const body = found.body();
      return body && { stored, body };
    };
    return {
      // With an older answer at hand nobody is kept waiting for further attempts.
      conditional: {
        ...request,
        headers: withHeaders(request.headers, revalidationHeaders(found.headers)),
        isSingleAttempt: mayServeOnError,
      },
      mayServeOnError,
      serve: () => answer(this.#aged(found)),
      confirm: head => {
        if (!isSameRepresentation(found.headers, head.headers)) {
          this.#store.remove(url);
          return undefined;
        }
        const { status, statusText, varyNames: names, varyKey: key } = found;
        const fresh: StoredResponse = {
          status,
          statusText,
          varyNames: names,
          varyKey: key,
          headers: freshened(found.headers, head.headers),
          requestedMs: request.record.sentMs ?? requestedMs,
          receivedMs: this.#time.wallMs(),
        };
        this.#store.freshen(url, found, fresh);
        return answer(this.#aged(fresh));
      },
    };
  }

  /** The variant that was stored for a request like this one. */
  #match(request: OutgoingRequest): FoundResponse | undefined {
    return this.#store.find(urlOf(request)).find(found => isVariant(found, varyKey(request, found.varyNames)));
  }

  #storedOf(request: OutgoingRequest, head: ResponseHead, requestedMs: number): StoredResponse {
    const { status, statusText, headers } = head;
    const names = [...new Set([...varyNames(headers["vary"]), ...ALWAYS_VARY])].sort();
    return {
      status,
      statusText,
      headers: storedHeaders(headers),
      requestedMs,
      receivedMs: this.#time.wallMs(),
      varyNames: names,
      varyKey: varyKey(request, names),
    };
  }

  #dated({ status, headers }: ResponseHead) {
    return {
      status,
      headers,
      responseControl: responseControl(headers["cache-control"]),
      receivedMs: this.#time.wallMs(),
    };
  }

  /** As it is served: with the age that it has now. */
  #aged(stored: StoredResponse): StoredHead {
    const { status, statusText, headers } = stored;
    const ageS = Math.floor(ageMs(this.#time.wallMs(), this.#factsOf(stored)) / 1000);
    return { status, statusText, headers: { ...headers, age: String(ageS) } };
  }

  #factsOf(stored: StoredResponse): EntryFacts {
    const known = this.#facts.get(stored);
    if (known !== undefined) return known;
    const facts = entryFacts(stored);
    this.#facts.set(stored, facts);
    return facts;
  }
}

function mayUseCache({ role, method, headers, body, options }: OutgoingRequest, { noStore }: RequestControl): boolean {
  // The answer to a GET with a body depends on what no cache looks at.
  if (body !== undefined && body !== null) return false;
  if (role === "artifact" || noStore || (method !== "GET" && method !== "HEAD") || options.upgrade) return false;
  for (let at = 0; at < headers.length; at += 2) if (CONDITIONAL_HEADERS.has(headers[at] as string)) return false;
  return true;
}

function urlOf({ origin, path }: OutgoingRequest): string {
  return `${origin}${path}`;
}

/** Same place, same fields, same budget. */
function coalescingKey({ role, origin, path, headers }: OutgoingRequest): string {
  return `${role} ${origin}${path}\n${headers.join("\n")}`;
}

function varyKey({ headers }: OutgoingRequest, names: readonly string[]): string {
  return varyKeyOf(names, name => joinedHeader(headers, name));
}

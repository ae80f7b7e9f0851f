import { type RequestControl, responseControl } from "../../core/cache/cache-control.ts";
import { ageMs, type EntryFacts, entryFacts } from "../../core/cache/freshness.ts";
import { decideReuse } from "../../core/cache/reuse.ts";
import { isStorable } from "../../core/cache/storability.ts";
import { invalidatedUrls, storedHeaders } from "../../core/cache/stored-fields.ts";
import { varyKeyOf, varyNames } from "../../core/cache/vary.ts";
import { isCredentialName } from "../../core/text/credentials.ts";
import type { Time } from "../../time/time.ts";
import type { ActiveRequests } from "../active-requests.ts";
import { CallRecord } from "../call-record.ts";
import { joinedHeader } from "../headers.ts";
import { withRewrittenHead } from "../stages/rewritten-head.ts";
import type { OutgoingRequest, RequestHandle, ResponseHead, ResponseSink, SendRequest } from "../stages/stage.ts";
import { deliverCacheReply, deliverNotCached, type StoredHead } from "./cache-reply.ts";
import { type CacheStore, type FoundResponse, isVariant, type StoredResponse } from "./cache-store.ts";
import { CoalescedRequest } from "./coalesced-request.ts";
import { type Revalidation, revalidationOf } from "./revalidation.ts";

export interface ResponseCacheDeps {
  readonly store: CacheStore;
  readonly time: Time;
  readonly activeRequests: ActiveRequests;
  readonly next: SendRequest;
}

/** Bounds the memory for keys whose responses cannot be shared. */
const UNSHAREABLE_KEYS_MAX = 1000;

/** Serves, stores and revalidates responses, and coalesces identical requests in flight. */
export class ResponseCache {
  readonly #store: CacheStore;
  readonly #time: Time;
  readonly #activeRequests: ActiveRequests;
  readonly #next: SendRequest;
  /** Requests in flight that identical requests may join, by coalescing key. */
  readonly #coalesced = new Map<string, CoalescedRequest>();
  /** Keys whose last response could not be shared: the next requests do not wait for each other. */
  readonly #unshareableKeys = new Set<string>();
  readonly #facts = new WeakMap<StoredResponse, EntryFacts>();

  constructor({ store, time, activeRequests, next }: ResponseCacheDeps) {
    this.#store = store;
    this.#time = time;
    this.#activeRequests = activeRequests;
    this.#next = next;
  }

  /** Serves a stored response, or sends the request. `control` is its parsed Cache-Control. */
  send(request: OutgoingRequest, control: RequestControl, sink: ResponseSink): RequestHandle {
    const found = control.ignoresStored ? undefined : this.#match(request);
    const verdict = found && decideReuse(this.#factsOf(found), control, this.#time.wallMs());
    if (found === undefined || verdict === undefined) return this.#forward(request, control, sink, undefined);
    if (verdict.kind === "revalidate") {
      return this.#forward(request, control, sink, this.#revalidationOf(request, found, verdict.mayServeOnError));
    }
    const body = found.body();
    // Another process has evicted it since it was found.
    if (body === undefined) return this.#forward(request, control, sink, undefined);
    const isFresh = verdict.kind === "fresh";
    if (verdict.kind === "stale-while-revalidate" && !control.onlyIfCached)
      this.#revalidateInBackground(request, control, found);
    return deliverCacheReply(request, isFresh ? "hit" : "stale", this.#withAge(found), body, sink);
  }

  /** Removes the stored responses that a successful unsafe request makes invalid (RFC 9111, section 4.4). */
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
    if (control.onlyIfCached) return deliverNotCached(request, sink);
    // The response to a HEAD has no body that could be stored for a GET.
    if (request.method !== "GET") return this.#next(request, sink);
    const key = coalescingKey(request);
    const pending = this.#coalesced.get(key);
    if (pending === undefined || control.noCache || control.ignoresStored) {
      return this.#startCoalesced(
        request,
        control,
        sink,
        revalidation,
        this.#unshareableKeys.has(key) ? undefined : key,
      );
    }
    // A request that may not wait as long as the pending one is sent on its own, so that it is refused in time.
    return pending.mayJoin(request)
      ? pending.addFollower(request, sink)
      : this.#startCoalesced(request, control, sink, revalidation, undefined);
  }

  /** @param key under which identical requests may join; undefined for none */
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

  /** At most one background request per key, however many callers were served the stale response. */
  #revalidateInBackground(request: OutgoingRequest, control: RequestControl, found: FoundResponse): void {
    const key = coalescingKey(request);
    if (this.#coalesced.has(key)) return;
    const background = { ...request, record: new CallRecord(), observer: undefined };
    const revalidation = this.#revalidationOf(background, found, true);
    this.#createCoalesced(background, control, revalidation, { key, isBackground: true }).begin();
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
        requestAgain: (follower, sink, isUnshared) => {
          const forwarded = this.#withRemainingWait(follower, sent.record.sentMs !== undefined);
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
   * A follower that is sent on its own. If the shared request was still queued, the time since the follower's start
   * counts as its own time in the queue, so less of its `maxWaitMs` is left (law L4).
   */
  #withRemainingWait(follower: OutgoingRequest, wasSent: boolean): OutgoingRequest {
    const { call, startedUs } = follower;
    if (wasSent || call.maxWaitMs === undefined) return { ...follower, needsCallerContext: true };
    const waitedMs = (this.#time.monotonicUs() - startedUs) / 1000;
    return {
      ...follower,
      needsCallerContext: true,
      call: { ...call, maxWaitMs: Math.max(0, call.maxWaitMs - waitedMs) },
    };
  }

  #markUnshareable(key: string | undefined): void {
    if (key === undefined) return;
    if (this.#unshareableKeys.size >= UNSHAREABLE_KEYS_MAX) this.#unshareableKeys.clear();
    this.#unshareableKeys.add(key);
  }

  #revalidationOf(request: OutgoingRequest, found: FoundResponse, mayServeOnError: boolean): Revalidation {
    const deps = { store: this.#store, time: this.#time, withAge: (stored: StoredResponse) => this.#withAge(stored) };
    return revalidationOf(deps, urlOf(request), request, found, mayServeOnError);
  }

  /**
   * The stored variant that this request selects. Responses to different credentials are kept apart, also when the
   * server sends no `Vary` (law L13): the credentials of the request must be among the headers that select the variant.
   */
  #match(request: OutgoingRequest): FoundResponse | undefined {
    const stored = this.#store.find(urlOf(request));
    if (stored.length === 0) return undefined;
    const credentials = credentialNames(request);
    return stored.find(
      found =>
        credentials.every(name => found.varyNames.includes(name)) &&
        isVariant(found, varyKey(request, found.varyNames)),
    );
  }

  #storedOf(request: OutgoingRequest, head: ResponseHead, requestedMs: number): StoredResponse {
    const { status, statusText, headers } = head;
    const names = [...new Set([...varyNames(headers["vary"]), ...credentialNames(request)])].sort();
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

  /** The head with its current `age`. */
  #withAge(stored: StoredResponse): StoredHead {
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

function urlOf({ origin, path }: OutgoingRequest): string {
  return `${origin}${path}`;
}

/** Requests are identical when URL, headers and role are: the role decides which limits apply. */
function coalescingKey({ role, origin, path, headers }: OutgoingRequest): string {
  return `${role} ${origin}${path}\n${headers.join("\n")}`;
}

/** The names of the request's headers that carry credentials. */
function credentialNames({ headers }: OutgoingRequest): readonly string[] {
  return headers.filter((name, at) => at % 2 === 0 && isCredentialName(name));
}

function varyKey({ headers }: OutgoingRequest, names: readonly string[]): string {
  return varyKeyOf(names, name => joinedHeader(headers, name));
}

import { type RequestControl, requestControl, responseControl } from "../../core/cache/cache-control.ts";
import { ageMs, type EntryFacts, entryFacts, isStorable, judge } from "../../core/cache/freshness.ts";
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
import type { UnderWay } from "../active-requests.ts";
import { replay, type Stored } from "../cache/cache-reply.ts";
import { type CacheStore, type FoundResponse, isVariant, type StoredResponse } from "../cache/cache-store.ts";
import { Fill, type Old } from "../cache/coalesced-request.ts";
import { CallRecord } from "../call-record.ts";
import { joinedHeader, withHeaders } from "../headers.ts";
import { rewritten } from "./rewritten-head.ts";
import type { Flow, Outgoing, ResponseHead, Send, Sink } from "./stage.ts";

export interface CacheRoom {
  /** Undefined for none: then only `offline` and `only-if-cached` are looked at. */
  readonly store: CacheStore | undefined;
  readonly time: Time;
  readonly underWay: UnderWay;
}

/** Who makes conditions himself, or wants a part, talks to the server and not to us. */
const OWN_CONDITIONS: ReadonlySet<string> = new Set([
  "range",
  "if-match",
  "if-none-match",
  "if-modified-since",
  "if-unmodified-since",
  "if-range",
]);
/** What one caller may see another must not get, whether the server says `Vary` or not. */
const ALWAYS_VARY = ["authorization", "cookie"] as const;
const NOT_CACHED: Stored = { status: 504, statusText: "Gateway Timeout", headers: { "content-type": "text/plain" } };
const NOT_CACHED_BODY = Buffer.from("docstokg: not in the cache, and the network was not to be asked\n");
/** As many answers that could not be shared are remembered, so that nobody waits for the next one in vain. */
const LONERS_MAX = 1000;

/**
 * A private HTTP cache (RFC 9111) above everything that costs: a hit takes no token, no slot and no notice of the
 * breaker, and is served while the host is cut off. Identical requests under way are one request.
 */
export function caching(room: CacheRoom, next: Send): Send {
  const { store } = room;
  const cache = store && new Cache(store, room, next);
  return (request, sink) => {
    const { headers, call } = request;
    const said = requestControl(joinedHeader(headers, "cache-control"), joinedHeader(headers, "pragma"));
    // Who is offline takes what there is, as RFC 9111 permits when disconnected.
    const control = call.offline ? { ...said, onlyIfCached: true, maxStaleS: Number.POSITIVE_INFINITY } : said;
    if (cache !== undefined && isServed(request, control)) return cache.send(request, control, sink);
    if (control.onlyIfCached) return replay(request, "offline", NOT_CACHED, NOT_CACHED_BODY, sink);
    return next(request, cache === undefined ? sink : cache.watching(request, sink));
  };
}

class Cache {
  readonly #store: CacheStore;
  readonly #time: Time;
  readonly #underWay: UnderWay;
  readonly #next: Send;
  /** Requests that somebody else may join, by all that makes them the same. */
  readonly #fills = new Map<string, Fill>();
  readonly #loners = new Set<string>();
  readonly #facts = new WeakMap<StoredResponse, EntryFacts>();

  constructor(store: CacheStore, { time, underWay }: CacheRoom, next: Send) {
    this.#store = store;
    this.#time = time;
    this.#underWay = underWay;
    this.#next = next;
  }

  send(request: Outgoing, control: RequestControl, sink: Sink): Flow {
    const found = this.#match(request);
    const verdict = found && judge(this.#factsOf(found), control, this.#time.wallMs());
    if (found === undefined || verdict === undefined) return this.#ask(request, control, sink, undefined);
    if (verdict.kind === "revalidate") {
      return this.#ask(request, control, sink, this.#oldOf(request, found, verdict.mayServeOnError));
    }
    const body = found.body();
    // It vanished between two looks: another process has made room.
    if (body === undefined) return this.#ask(request, control, sink, undefined);
    const isFresh = verdict.kind === "fresh";
    if (verdict.kind === "stale-while-revalidate" && !control.onlyIfCached) this.#refresh(request, control, found);
    return replay(request, isFresh ? "hit" : "stale", this.#aged(found), body, sink);
  }

  /** Forgets what a request that changes things has changed. */
  watching(request: Outgoing, sink: Sink): Sink {
    const { method, origin, path } = request;
    if (method === "GET" || method === "HEAD" || method === "OPTIONS") return sink;
    return rewritten(sink, head => {
      for (const url of invalidatedUrls(method, head.status, `${origin}${path}`, head.headers)) this.#store.remove(url);
      return head;
    });
  }

  #ask(request: Outgoing, control: RequestControl, sink: Sink, old: Old | undefined): Flow {
    if (control.onlyIfCached) return replay(request, "offline", NOT_CACHED, NOT_CACHED_BODY, sink);
    // A HEAD has no body to keep, and its answer is no answer to a GET.
    if (request.method !== "GET") return this.#next(request, sink);
    const key = keyOf(request);
    const underWay = this.#fills.get(key);
    if (underWay === undefined || control.noCache) {
      return this.#lead(request, control, sink, old, this.#loners.has(key) ? undefined : key);
    }
    // Who may not wait as long as that one asks for himself, and is told at once if he would have to.
    return underWay.suits(request) ? underWay.join(request, sink) : this.#lead(request, control, sink, old, undefined);
  }

  /** `key`: by which others may join. */
  #lead(request: Outgoing, control: RequestControl, sink: Sink, old: Old | undefined, key: string | undefined): Flow {
    const fill = this.#fill(request, control, old, { key });
    const flow = fill.lead(request, sink);
    fill.begin();
    return flow;
  }

  /** One request in the background, however many were served the stale answer meanwhile. */
  #refresh(request: Outgoing, control: RequestControl, found: FoundResponse): void {
    const key = keyOf(request);
    if (this.#fills.has(key)) return;
    const own = { ...request, record: new CallRecord(), observer: undefined };
    this.#fill(own, control, this.#oldOf(own, found, true), { key, isBackground: true }).begin();
  }

  #fill(
    request: Outgoing,
    control: RequestControl,
    old: Old | undefined,
    { key, isBackground = false }: { readonly key: string | undefined; readonly isBackground?: boolean },
  ): Fill {
    const requestedMs = this.#time.wallMs();
    const sent = old === undefined ? request : old.conditional;
    const fill = new Fill(
      {
        next: this.#next,
        maxBytes: this.#store.maxEntryBytes,
        isStorable: head => isStorable({ ...this.#dated(head), method: sent.method, requestControl: control }),
        store: (head, body) => {
          const stored = this.#storedOf(request, head, sent.record.sentMs ?? requestedMs);
          this.#store.put(urlOf(request), stored, body);
        },
        rejoin: (one, sink, isAlone) => {
          const astray = this.#parted(one, sent.record.sentMs !== undefined);
          return isAlone ? this.#lead(astray, control, sink, undefined, undefined) : this.send(astray, control, sink);
        },
        unshared: () => this.#remember(key),
        settled: () => {
          if (key !== undefined && this.#fills.get(key) === fill) this.#fills.delete(key);
        },
        over: () => this.#underWay.delete(fill),
      },
      sent,
      old,
      isBackground,
    );
    if (key !== undefined) this.#fills.set(key, fill);
    this.#underWay.add(fill);
    return fill;
  }

  /**
   * Somebody who has waited for another's request and goes his own way. Who waited in line with it has that much less
   * left of his own bound (law L4); waiting for an answer is no waiting in line.
   */
  #parted(one: Outgoing, wasSent: boolean): Outgoing {
    const { call, startedUs } = one;
    if (wasSent || call.maxWaitMs === undefined) return { ...one, isAstray: true };
    const waitedMs = (this.#time.monotonicUs() - startedUs) / 1000;
    return { ...one, isAstray: true, call: { ...call, maxWaitMs: Math.max(0, call.maxWaitMs - waitedMs) } };
  }

  #remember(key: string | undefined): void {
    if (key === undefined) return;
    if (this.#loners.size >= LONERS_MAX) this.#loners.clear();
    this.#loners.add(key);
  }

  #oldOf(request: Outgoing, found: FoundResponse, mayServeOnError: boolean): Old {
    const url = urlOf(request);
    const requestedMs = this.#time.wallMs();
    const answer = (stored: Stored) => {
      const body = found.body();
      return body && { stored, body };
    };
    return {
      // With an older answer at hand nobody is kept waiting for further attempts.
      conditional: {
        ...request,
        headers: withHeaders(request.headers, revalidationHeaders(found.headers)),
        isSingle: mayServeOnError,
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
  #match(request: Outgoing): FoundResponse | undefined {
    return this.#store.find(urlOf(request)).find(found => isVariant(found, varyKey(request, found.varyNames)));
  }

  #storedOf(request: Outgoing, head: ResponseHead, requestedMs: number): StoredResponse {
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
  #aged(stored: StoredResponse): Stored {
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

function isServed({ role, method, headers, body, options }: Outgoing, { noStore }: RequestControl): boolean {
  // The answer to a GET with a body depends on what no cache looks at.
  if (body !== undefined && body !== null) return false;
  if (role === "artifact" || noStore || (method !== "GET" && method !== "HEAD") || options.upgrade) return false;
  for (let at = 0; at < headers.length; at += 2) if (OWN_CONDITIONS.has(headers[at] as string)) return false;
  return true;
}

function urlOf({ origin, path }: Outgoing): string {
  return `${origin}${path}`;
}

/** Same place, same fields, same budget. */
function keyOf({ role, origin, path, headers }: Outgoing): string {
  return `${role} ${origin}${path}\n${headers.join("\n")}`;
}

function varyKey({ headers }: Outgoing, names: readonly string[]): string {
  return varyKeyOf(names, name => joinedHeader(headers, name));
}

import { strongTag } from "../../core/cache/byte-range.ts";
import { type RequestControl, responseControl } from "../../core/cache/cache-control.ts";
import { ageMs, type EntryFacts, entryFacts, HEURISTICALLY_CACHEABLE } from "../../core/cache/freshness.ts";
import { isStorable } from "../../core/cache/reuse.ts";
import { freshened, invalidatedUrls, storedHeaders } from "../../core/cache/stored-fields.ts";
import { varyNames } from "../../core/cache/vary.ts";
import type { Time } from "../../time/time.ts";
import type { CallRecord } from "../call-record.ts";
import type { CallerIdentity } from "../stages/caller-identity.ts";
import type { OutgoingRequest, ResponseHead } from "../stages/stage.ts";
import type { StoredHead } from "./cache-reply.ts";
import { type CacheStore, type FoundResponse, headBytes, isVariant, type StoredResponse } from "./cache-store.ts";
import { Invalidations } from "./invalidations.ts";
import { storablePart } from "./partial-response.ts";
import { Selection } from "./selection.ts";

/** Each 304 may add header fields, so that a stored head would grow without limit. */
const FRESHENED_HEAD_BYTES_MAX = 65_536;

/** How the request of a response was sent. */
export interface SendingFacts {
  /** Wall-clock time. */
  readonly requestedMs: number;
  /** A reload may have replaced it since. Undefined if the request was not identified. */
  readonly identity: CallerIdentity | undefined;
  /** The invalidations before the request. */
  readonly invalidations: number;
}

/** The responses in a store, as requests see them: by URL, selecting headers and credentials, with their age. */
export class StoredResponses {
  readonly store: CacheStore;
  readonly #time: Time;
  readonly #callerIdentity: () => CallerIdentity;
  readonly #invalidations = new Invalidations();
  readonly #facts = new WeakMap<StoredResponse, EntryFacts>();

  constructor(store: CacheStore, time: Time, callerIdentity: () => CallerIdentity) {
    this.store = store;
    this.#time = time;
    this.#callerIdentity = callerIdentity;
  }

  /**
   * The stored variant that this request selects. Responses to different credentials and partitions are kept apart, also
   * when the server sends no `Vary` (law L13): a variant matches only if the separating names of the request are among the
   * names that select it.
   */
  find(request: OutgoingRequest): FoundResponse | undefined {
    const stored = this.store.find(urlOf(request));
    if (stored.length === 0) return undefined;
    const selection = new Selection(request, this.#callerIdentity());
    return stored.find(
      found =>
        selection.separatingNames.every(name => found.varyNames.includes(name)) &&
        isVariant(found, selection.keyOf(found.varyNames)),
    );
  }

  isStorable(request: OutgoingRequest, head: StoredHead, control: RequestControl): boolean {
    const { status, headers } = head;
    if (isMarkedFailure(request, status)) return false;
    return isStorable({
      method: request.method,
      url: urlOf(request),
      status,
      headers,
      requestControl: control,
      responseControl: responseControl(headers["cache-control"]),
      receivedMs: this.#time.wallMs(),
    });
  }

  /**
   * Has no effect if this hub has sent a successful unsafe request for the URL since, or if the stored response was
   * requested later than this one: the older response must not replace the newer one.
   */
  put(request: OutgoingRequest, head: ResponseHead, chunks: readonly Buffer[], sent: SendingFacts): void {
    if (this.isInvalidatedSince(request, sent.invalidations)) return;
    const stored = this.find(request);
    if (stored !== undefined && this.#isNewer(stored, head, sent)) return;
    const isPart = head.status === 206;
    const part = isPart ? storablePart(head, chunks, stored) : undefined;
    if (isPart && part === undefined) return;
    const response = this.#storedOf(request, part?.head ?? head, sent);
    const isStored = this.store.put(urlOf(request), response, part === undefined ? chunks : [part.body]);
    // The older response must not be found after a newer one has come, for example by a reload.
    if (!isStored && !isPart && stored !== undefined) this.remove(request);
  }

  /** Parts of one representation complete each other, in whatever order they were requested. */
  #isNewer(stored: FoundResponse, { headers }: StoredHead, { requestedMs }: SendingFacts): boolean {
    // A time in the future is that of a clock that was set back since.
    const isLater = stored.requestedMs > requestedMs && stored.requestedMs <= this.#time.wallMs();
    const tag = strongTag(stored.headers);
    return isLater && (tag === undefined || tag !== strongTag(headers));
  }

  /**
   * Updates a stored response by the headers of a 304, which may also change the headers that select it. If they forbid
   * to store it (`no-store`, `Vary: *`), or there are too many of them, it is removed.
   */
  freshen(
    request: OutgoingRequest,
    found: FoundResponse,
    { headers }: Pick<ResponseHead, "headers">,
    control: RequestControl,
    sent: SendingFacts,
  ): { readonly fresh: StoredResponse; readonly isStorable: boolean } {
    const { status, statusText } = found;
    const fresh = this.#storedOf(request, { status, statusText, headers: freshened(found.headers, headers) }, sent);
    // The request may be a HEAD, and the stored response answers GETs.
    const isPermitted = this.isStorable({ ...request, method: "GET" }, fresh, control);
    const isStorable = isPermitted && headBytes(urlOf(request), fresh) <= FRESHENED_HEAD_BYTES_MAX;
    if (!isStorable) this.remove(request);
    else if (this.#isStillStored(request, found, sent)) this.store.freshen(urlOf(request), found, fresh);
    return { fresh, isStorable };
  }

  /** The store compares times, and another part may have been stored within the same millisecond. */
  #isStillStored(request: OutgoingRequest, found: FoundResponse, { invalidations }: SendingFacts): boolean {
    const stored = this.find(request);
    const isSameBody =
      stored?.bodyBytes === found.bodyBytes && stored.headers["content-range"] === found.headers["content-range"];
    return isSameBody && !this.isInvalidatedSince(request, invalidations);
  }

  /** Removes the responses of the URL. */
  remove(request: OutgoingRequest): void {
    this.store.remove(urlOf(request));
  }

  /** Removes the responses that a successful unsafe request makes invalid (RFC 9111, section 4.4). */
  invalidate(
    request: Pick<OutgoingRequest, "method" | "origin" | "path">,
    { status, headers }: Pick<ResponseHead, "status" | "headers">,
  ): void {
    for (const url of invalidatedUrls(request.method, status, urlOf(request), headers)) {
      this.store.remove(url);
      this.#invalidations.add(url);
    }
  }

  /** The invalidations so far, for `isInvalidatedSince`. */
  get invalidations(): number {
    return this.#invalidations.count;
  }

  /** Whether the responses of the URL were invalidated since there were `invalidations`. */
  isInvalidatedSince(request: OutgoingRequest, invalidations: number): boolean {
    return this.#invalidations.isSince(urlOf(request), invalidations);
  }

  /**
   * Removes the stored responses of a URL after a newer response that is not stored itself, because it has no lifetime or
   * its body is too long. A response that says nothing about the resource (a failure, a missing permission) removes none.
   */
  supersede(request: OutgoingRequest, { status }: ResponseHead): void {
    if (status === 206 || !HEURISTICALLY_CACHEABLE.has(status) || request.record.outcome?.kind === "failure") return;
    if (this.find(request) !== undefined) this.remove(request);
  }

  /** The head with its current `age`. */
  withAge(stored: StoredResponse): StoredHead {
    const { status, statusText, headers } = stored;
    const ageS = Math.floor(ageMs(this.#time.wallMs(), this.factsOf(stored)) / 1000);
    return { status, statusText, headers: { ...headers, age: String(ageS) } };
  }

  factsOf(stored: StoredResponse): EntryFacts {
    const known = this.#facts.get(stored);
    if (known !== undefined) return known;
    const facts = entryFacts(stored);
    this.#facts.set(stored, facts);
    return facts;
  }

  #storedOf(request: OutgoingRequest, head: StoredHead, { identity, requestedMs }: SendingFacts): StoredResponse {
    const { status, statusText, headers } = head;
    const selection = new Selection(request, identity ?? this.#callerIdentity());
    const { separatingNames } = selection;
    const varied = varyNames(headers["vary"]);
    const names = separatingNames.length === 0 ? varied : [...new Set([...varied, ...separatingNames])].sort();
    return {
      status,
      statusText,
      headers: storedHeaders(headers),
      requestedMs,
      receivedMs: this.#time.wallMs(),
      varyNames: names,
      varyKey: selection.keyOf(names),
    };
  }
}

/** @param requestedMs wall-clock time of the request, if its attempt was not written */
export function sendingFacts(
  { sentMs, identity }: CallRecord,
  requestedMs: number,
  invalidations: number,
): SendingFacts {
  return { requestedMs: sentMs ?? requestedMs, identity, invalidations };
}

function urlOf({ origin, path }: Pick<OutgoingRequest, "origin" | "path">): string {
  return `${origin}${path}`;
}

/**
 * True for a throttle, and for a failure that only a rule or the caller recognises: its status and headers may look like
 * those of a response that may be stored. Another failure, known by its status, is stored if the server gives it a lifetime.
 */
function isMarkedFailure({ record: { outcome }, call }: OutgoingRequest, status: number): boolean {
  return outcome?.kind === "failure" && (outcome.throttled || status < 400 || call.outcome !== undefined);
}

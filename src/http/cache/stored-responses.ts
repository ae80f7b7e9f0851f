import { type RequestControl, responseControl } from "../../core/cache/cache-control.ts";
import { ageMs, type EntryFacts, entryFacts } from "../../core/cache/freshness.ts";
import { isStorable } from "../../core/cache/reuse.ts";
import { invalidatedUrls, storedHeaders } from "../../core/cache/stored-fields.ts";
import { varyKeyOf, varyNames } from "../../core/cache/vary.ts";
import { isCredentialName } from "../../core/text/credentials.ts";
import type { Time } from "../../time/time.ts";
import { joinedHeader } from "../headers.ts";
import type { OutgoingRequest, ResponseHead } from "../stages/stage.ts";
import type { StoredHead } from "./cache-reply.ts";
import { type CacheStore, type FoundResponse, isVariant, type StoredResponse } from "./cache-store.ts";
import { storablePart } from "./partial-response.ts";

/** The responses in a store, as requests see them: by URL, selecting headers and credentials, with their age. */
export class StoredResponses {
  readonly #store: CacheStore;
  readonly #time: Time;
  readonly #facts = new WeakMap<StoredResponse, EntryFacts>();

  constructor(store: CacheStore, time: Time) {
    this.#store = store;
    this.#time = time;
  }

  /**
   * The stored variant that this request selects. Responses to different credentials and partitions are kept apart, also
   * when the server sends no `Vary` (law L13): a variant matches only if the credential headers and the partition of the
   * request are among the names that select it.
   */
  find(request: OutgoingRequest): FoundResponse | undefined {
    const stored = this.#store.find(urlOf(request));
    if (stored.length === 0) return undefined;
    const separating = separatingNames(request);
    return stored.find(
      found =>
        separating.every(name => found.varyNames.includes(name)) && isVariant(found, varyKey(request, found.varyNames)),
    );
  }

  isStorable(request: OutgoingRequest, head: ResponseHead, control: RequestControl): boolean {
    const { status, headers } = head;
    // A throttle that is sent with a good status.
    if (status < 400 && request.record.outcome?.kind === "failure") return false;
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

  /** @param requestedMs wall-clock time when the request was sent */
  put(request: OutgoingRequest, head: ResponseHead, chunks: readonly Buffer[], requestedMs: number): void {
    if (head.status !== 206) {
      this.#store.put(urlOf(request), this.#storedOf(request, head, requestedMs), chunks);
      return;
    }
    const part = storablePart(head, chunks, this.find(request));
    if (part !== undefined)
      this.#store.put(urlOf(request), this.#storedOf(request, part.head, requestedMs), [part.body]);
  }

  /** Removes the responses that a successful unsafe request makes invalid (RFC 9111, section 4.4). */
  invalidate(request: OutgoingRequest, { status, headers }: ResponseHead): void {
    for (const url of invalidatedUrls(request.method, status, urlOf(request), headers)) this.#store.remove(url);
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

  #storedOf(request: OutgoingRequest, head: StoredHead, requestedMs: number): StoredResponse {
    const { status, statusText, headers } = head;
    const separating = separatingNames(request);
    const varied = varyNames(headers["vary"]);
    const names = separating.length === 0 ? varied : [...new Set([...varied, ...separating])].sort();
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
}

export function urlOf({ origin, path }: OutgoingRequest): string {
  return `${origin}${path}`;
}

/** Stands for the partition among the names that select a variant. No header can have this name. */
const PARTITION = "(partition)";

/** The names of the request's headers that carry credentials, and `PARTITION` for a call with a partition. */
function separatingNames({ headers, call }: OutgoingRequest): readonly string[] {
  let names: string[] | undefined = call.partition === undefined ? undefined : [PARTITION];
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] as string;
    if (ORDINARY_NAMES.has(name) || !isCredentialName(name)) continue;
    names ??= [];
    names.push(name);
  }
  return names ?? NO_NAMES;
}

const NO_NAMES: readonly string[] = Object.freeze([]);
/** Headers of most requests, whose names need no closer look: this runs for every request. */
const ORDINARY_NAMES: ReadonlySet<string> = new Set(
  "host connection accept accept-language accept-encoding sec-fetch-mode user-agent".split(" "),
);

function varyKey({ headers, call: { partition } }: OutgoingRequest, names: readonly string[]): string {
  // As JSON it is a quoted string, which is compared exactly.
  return varyKeyOf(names, name =>
    name === PARTITION ? partition && JSON.stringify(partition) : joinedHeader(headers, name),
  );
}

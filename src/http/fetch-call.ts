import { type CacheMode, isCacheMode } from "../core/cache/cache-control.ts";
import { isCredentialName } from "../core/text/credentials.ts";
import type { ActiveRequest, ActiveRequests } from "./active-requests.ts";
import { fieldLine, withoutHeaders } from "./headers.ts";
import type { FetchInput } from "./hub.ts";
import { decideRedirect, requestUrl } from "./stages/redirect-hop.ts";
import type { OutgoingRequest, ResponseHead } from "./stages/stage.ts";

/**
 * One call of `fetch`. fetch passes each redirect to the dispatcher as a new request. This object holds facts that a
 * dispatcher does not get: when the call began, its cache mode, and whether a redirect has left the first origin.
 */
export class FetchCall implements ActiveRequest {
  /** Its requests are counted themselves. */
  readonly isCall = false;
  previousActive: ActiveRequest | undefined = undefined;
  nextActive: ActiveRequest | undefined = undefined;
  /** When the call began, in monotonic microseconds: its deadline covers all redirects. */
  readonly sinceUs: number;
  readonly cacheMode: CacheMode;
  /** True when the body of a redirect is not read: fetch sends the next request, or rejects. */
  readonly discardsRedirects: boolean;
  /** The signal of the call, which fetch does not pass to a dispatcher. */
  readonly signal: unknown;
  /** The body of an idempotent call, which may be sent twice; undefined if the body is sent as a stream. */
  bodyBytes: Uint8Array | undefined;
  #origin: string | undefined;
  #hasLeftOrigin = false;
  readonly #observer: FetchCallObserver | undefined;
  #heldBy: ActiveRequests | undefined;
  #isAborted = false;

  /**
   * @param options of the call; its `cache` overrides that of a `Request`
   */
  constructor(input: FetchInput, options: object | null | undefined, sinceUs: number, observer?: FetchCallObserver) {
    this.sinceUs = sinceUs;
    this.#observer = observer;
    const given = options as FetchFields | null | undefined;
    const mode = given?.cache ?? requestField(input, "cache");
    this.cacheMode = isCacheMode(mode) ? mode : "default";
    this.signal = given?.signal ?? requestField(input, "signal");
    this.discardsRedirects = (given?.redirect ?? requestField(input, "redirect")) !== "manual";
  }

  /** Whether a request of this call has reached the hub. */
  get isSent(): boolean {
    return this.#origin !== undefined;
  }

  /** The hub is not closed before `release`, and sends further requests of this call. */
  keepHubOpen(activeRequests: ActiveRequests): void {
    if (this.#heldBy !== undefined) return;
    this.#heldBy = activeRequests;
    activeRequests.add(this);
  }

  release(): void {
    this.#heldBy?.delete(this);
    this.#heldBy = undefined;
  }

  /** Whether its requests are sent although the hub is being closed. */
  get keepsHubOpen(): boolean {
    return this.#heldBy !== undefined && !this.#isAborted;
  }

  /** Called when the hub is destroyed. A request that is being sent is aborted by itself. */
  abort(): void {
    this.#isAborted = true;
  }

  /**
   * The headers for the next request of this call. fetch itself drops only Authorization, Cookie and Host when a redirect
   * leads to another origin. Here every credential is dropped, also when a later redirect returns to the first origin.
   */
  headersFor(origin: string, headers: readonly string[]): readonly string[] {
    this.#hasLeftOrigin = this.dropsCredentialsAt(origin);
    this.#origin = origin;
    return this.#hasLeftOrigin ? withoutHeaders(headers, isCredentialName) : headers;
  }

  /** Whether a request to this origin is sent without credentials. */
  dropsCredentialsAt(origin: string): boolean {
    return this.#hasLeftOrigin || (this.#origin !== undefined && this.#origin !== origin);
  }

  /** A request of this call has got this response, which may be a redirect. */
  answered({ status, headers }: ResponseHead, request: OutgoingRequest): void {
    const observer = this.#observer;
    if (observer === undefined) return;
    const location = fieldLine(headers["location"]);
    const decision = decideRedirect({ status, location }, { url: requestUrl(request), method: request.method });
    // After a 421, fetch sends the same request once more.
    if (decision.kind === "hop" || status === MISDIRECTED)
      observer.onNext(this, decision.kind === "hop" ? decision.url.origin : request.origin);
    else observer.onEnd(this);
  }
}

interface FetchFields {
  readonly cache?: unknown;
  readonly signal?: unknown;
  readonly redirect?: unknown;
}

const MISDIRECTED = 421;

/** Learns what becomes of the call, before fetch gets the response. */
export interface FetchCallObserver {
  /** fetch sends another request of this call to this origin, unless its caller wants no redirects. */
  onNext(call: FetchCall, origin: string): void;
  onEnd(call: FetchCall): void;
}

/** The URL of a call as text, which may be invalid. */
export function urlOf(input: FetchInput): string {
  return typeof input === "object" && "url" in input ? input.url : String(input);
}

/** Reads any object with this property, because a library may have its own class `Request`. */
function requestField(input: FetchInput, field: keyof FetchFields): unknown {
  return typeof input === "object" && input !== null && field in input ? Reflect.get(input, field) : undefined;
}

/** Where a request goes, in the form that dispatchers take. */
export interface RequestTarget {
  readonly origin: string;
  /** Path and query. */
  readonly path: string;
}

/**
 * A path and query that `new URL` leaves as they are: without dot segments, without an empty query, and without a
 * character that it encodes or removes.
 */
const UNCHANGED = /^(?:\/(?!\.|%2[Ee])[\w!$&()*+,;=:@.~%-]*)+(?:\?[\w!$&()*+,;=:@.~%/?-]+)?$/;

/**
 * Splits the URLs of requests into origin and path. Parsing a URL takes longer than the decisions of limiter and breakers
 * together. So a URL in normal form that begins with the last origin is not parsed.
 */
export class RequestTargets {
  /** The origin of the last URL that was parsed, in normal form. */
  #lastOrigin = "";

  /** Undefined for anything that is not an http or https URL. */
  of(url: unknown): RequestTarget | undefined {
    if (typeof url !== "string") return url instanceof URL ? targetOf(url) : undefined;
    const origin = this.#lastOrigin;
    if (origin !== "" && url.startsWith(origin)) {
      const path = url.slice(origin.length);
      if (UNCHANGED.test(path)) return { origin, path };
    }
    const parsed = URL.parse(url);
    const target = parsed === null ? undefined : targetOf(parsed);
    if (target !== undefined) this.#lastOrigin = target.origin;
    return target;
  }
}

function targetOf({ protocol, origin, pathname, search }: URL): RequestTarget | undefined {
  return protocol === "https:" || protocol === "http:" ? { origin, path: `${pathname}${search}` } : undefined;
}

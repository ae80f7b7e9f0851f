import { RedirectError } from "../../errors.ts";
import { fieldLine, withoutHeaders } from "../headers.ts";
import { isReplayableBody } from "./replayable.ts";
import { ResendingRequest } from "./resending-request.ts";
import type { OutgoingRequest, ResponseHead, ResponseSink, SendRequest } from "./stage.ts";

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Names of fields that prove who we are, by custom if not by standard. */
const CREDENTIALS = /^(?:authorization|proxy-authorization|cookie|.*api[-_]?key.*|.*token.*|.*secret.*)$/;

/** Which host a hop is charged to. */
export type HostOf = (origin: string) => string;

/**
 * Follows redirects for callers that do not do it themselves; fetch does. Each hop is a request of its own, charged to
 * its own host. Across origins no credentials go along.
 */
export function redirectStage(hostOf: HostOf, next: SendRequest): SendRequest {
  return (request, sink) =>
    (request.call.maxRedirections ?? 0) > 0 ? new RedirectingRequest(hostOf, next, request, sink) : next(request, sink);
}

class RedirectingRequest extends ResendingRequest {
  readonly #hostOf: HostOf;
  readonly #visited: string[];
  #request: OutgoingRequest;
  #hop: OutgoingRequest | undefined;

  constructor(hostOf: HostOf, next: SendRequest, request: OutgoingRequest, sink: ResponseSink) {
    super(next, sink);
    this.#hostOf = hostOf;
    this.#request = request;
    this.#visited = [hopKey(request)];
    this.dispatch(request);
  }

  protected withholds({ status, headers }: ResponseHead): boolean {
    const location = fieldLine(headers["location"]);
    if (!REDIRECTS.has(status) || location === undefined) return false;
    try {
      this.#hop = this.#nextHop(status, location);
      return this.#hop !== undefined;
    } catch (error) {
      this.isOver = true;
      this.failWith(error);
      return false;
    }
  }

  protected withholdsFailure(): boolean {
    return false;
  }

  /** Where to go is known; how the page about it ended does not matter. */
  protected onWithheldEnd(): void {
    if (this.#hop === undefined || this.isOver) return;
    this.#request = this.#hop;
    this.#hop = undefined;
    this.dispatch(this.#request);
  }

  /** The next hop; undefined when the caller should see the redirect itself, because its body cannot be sent again. */
  #nextHop(status: number, location: string): OutgoingRequest | undefined {
    const { method, body, call } = this.#request;
    const from = new URL(this.#request.path, this.#request.origin);
    const to = URL.parse(location, from.href);
    const trail = this.#visited;
    if (to === null || (to.protocol !== "http:" && to.protocol !== "https:")) {
      throw new RedirectError(`${from.host} redirects to what is no http or https address`);
    }
    const isRewritten = (status === 303 && method !== "HEAD") || (status < 303 && method === "POST");
    if (!isRewritten && !isReplayableBody(body)) return undefined;
    const isSameOrigin = to.origin === from.origin;
    const hop: OutgoingRequest = {
      ...this.#request,
      origin: to.origin,
      host: this.#hostOf(to.origin),
      path: `${to.pathname}${to.search}`,
      method: isRewritten ? "GET" : method,
      body: isRewritten ? null : body,
      headers: withoutHeaders(
        this.#request.headers,
        name =>
          name === "host" || (isRewritten && name.startsWith("content-")) || (!isSameOrigin && CREDENTIALS.test(name)),
      ),
    };
    const key = hopKey(hop);
    if (trail.includes(key)) throw new RedirectError(`a redirect loop of ${trail.length}, back to ${to.host}`);
    if (trail.length > (call.maxRedirections ?? 0)) {
      throw new RedirectError(`more than ${call.maxRedirections} redirects, the last one to ${to.host}`);
    }
    trail.push(key);
    return hop;
  }
}

function hopKey({ method, origin, path }: OutgoingRequest): string {
  return `${method} ${origin}${path}`;
}

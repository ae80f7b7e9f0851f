import { RedirectError } from "../../errors.ts";
import type { Time } from "../../time/time.ts";
import { fieldLine, withoutHeaders } from "../headers.ts";
import { decideRedirect, redirectChainProblem, requestUrl } from "./redirect-hop.ts";
import { isReplayableBody, ResendingRequest } from "./resending-request.ts";
import type { OutgoingRequest, ResponseHead, ResponseSink, SendRequest } from "./stage.ts";

/** The name of an origin in policies, windows and circuits. */
export type HostOf = (origin: string) => string;

/**
 * Follows redirects for calls with `maxRedirections`; fetch follows them itself. Each hop is a separate request that
 * uses the limits of its own host. Credentials are not sent to another origin.
 */
export function redirectStage(hostOf: HostOf, time: Time, next: SendRequest): SendRequest {
  return (request, sink) => {
    const { maxRedirections = 0 } = request.call;
    return maxRedirections > 0 ? new RedirectingRequest(hostOf, time, next, request, sink) : next(request, sink);
  };
}

class RedirectingRequest extends ResendingRequest {
  readonly #hostOf: HostOf;
  readonly #visited: string[];
  #request: OutgoingRequest;
  #hop: OutgoingRequest | undefined;

  constructor(hostOf: HostOf, time: Time, next: SendRequest, request: OutgoingRequest, sink: ResponseSink) {
    super(time, next, sink);
    this.#hostOf = hostOf;
    this.#request = request;
    this.#visited = [hopKey(request)];
    this.dispatch(request);
  }

  protected withholds({ status, headers }: ResponseHead): boolean {
    try {
      this.#hop = this.#nextHop(status, fieldLine(headers["location"]));
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

  /** The next hop is sent whether the body of the redirect was complete or not. */
  protected onWithheldEnd(): void {
    if (this.#hop === undefined || this.isOver) return;
    this.#request = this.#hop;
    this.#hop = undefined;
    this.#request.record.finalHop = this.#request;
    this.dispatch(this.#request);
  }

  /**
   * The next hop; undefined when the response is not a redirect, or when the request body cannot be sent again: then the
   * caller gets the response itself.
   */
  #nextHop(status: number, location: string | undefined): OutgoingRequest | undefined {
    const { method, body, call } = this.#request;
    const url = requestUrl(this.#request);
    const decision = decideRedirect({ status, location }, { url, method });
    if (decision.kind === "none") return undefined;
    if (decision.kind === "invalid") throw new RedirectError(decision.message);
    if (!decision.dropsBody && !isReplayableBody(body)) return undefined;
    const { origin, host, pathname, search } = decision.url;
    const hop: OutgoingRequest = {
      ...this.#request,
      origin,
      host: this.#hostOf(origin),
      path: `${pathname}${search}`,
      method: decision.method,
      cause: "redirect",
      body: decision.dropsBody ? null : body,
      headers: withoutHeaders(this.#request.headers, decision.dropsHeader),
    };
    const key = hopKey(hop);
    const limits = { host, max: call.maxRedirections ?? 0, limitName: "maxRedirections" };
    const problem = redirectChainProblem(this.#visited, key, limits);
    if (problem !== undefined) throw new RedirectError(problem);
    this.#visited.push(key);
    return hop;
  }
}

function hopKey({ method, origin, path }: OutgoingRequest): string {
  return `${method} ${origin}${path}`;
}

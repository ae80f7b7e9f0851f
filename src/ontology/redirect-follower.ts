import type { Dispatcher } from "undici";
import { DownloadError, isDocstokgError, RejectedError } from "../errors.ts";
import type { CallOptions } from "../http/call-options.ts";
import { fieldLine } from "../http/headers.ts";
import type { Hub } from "../http/hub.ts";
import { decideRedirect, redirectChainProblem } from "../http/stages/redirect-hop.ts";

export interface FollowOptions extends Pick<CallOptions, "role" | "service" | "maxWaitMs" | "maxBreakerWaitMs"> {
  readonly method?: "GET" | "HEAD" | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

export interface FollowedResponse {
  readonly response: Dispatcher.ResponseData<unknown>;
  /** The URL after all redirects. */
  readonly url: string;
}

/** Permanent URLs redirect about four times: to a registry, a repository and a content network. */
const REDIRECTS_MAX = 10;

/**
 * Follows redirects with one call of the hub for each hop. The hub can follow redirects itself, but it does not replace
 * http by https, and it does not return the final URL, which the manifest records.
 */
export class RedirectFollower {
  readonly #hub: Hub;
  /** By host: whether it supports TLS. */
  readonly #supportsTls = new Map<string, Promise<boolean>>();

  constructor(hub: Hub) {
    this.#hub = hub;
  }

  /**
   * Rejects with a DownloadError for a loop, too many redirects or an invalid target, and with the errors of the hub.
   */
  async follow(firstUrl: string, options: FollowOptions): Promise<FollowedResponse> {
    const { method = "GET", signal, ...call } = options;
    const visited: string[] = [];
    let headers = { ...options.headers };
    let target = new URL(firstUrl);
    /** Whether the next request must use http, because https has failed. */
    let isHttpForced = false;
    for (;;) {
      const url = isHttpForced ? target : await this.#preferHttps(target, options);
      const isUpgraded = url.protocol !== target.protocol;
      isHttpForced = false;
      const problem = redirectChainProblem(visited, url.href, { host: url.host, max: REDIRECTS_MAX });
      if (problem !== undefined) throw new DownloadError(problem);
      visited.push(url.href);
      let response: Dispatcher.ResponseData<unknown>;
      try {
        response = await this.#hub.request(url, { ...call, method, headers, signal: signal ?? null });
      } catch (error) {
        signal?.throwIfAborted();
        // The host answered the probe over https, but not this request: its files may be on http only.
        if (!isUpgraded || isDocstokgError(error)) throw error;
        this.#supportsTls.set(url.host, Promise.resolve(false));
        isHttpForced = true;
        continue;
      }
      if (isUpgraded && MISSING_OVER_HTTPS.has(response.statusCode)) {
        await response.body.dump();
        isHttpForced = true;
        continue;
      }
      const { statusCode: status } = response;
      const decision = decideRedirect({ status, location: fieldLine(response.headers["location"]) }, { url, method });
      if (decision.kind === "none") return { response, url: url.href };
      await response.body.dump();
      if (decision.kind === "invalid") throw new DownloadError(decision.message);
      headers = Object.fromEntries(
        Object.entries(headers).filter(([name]) => !decision.dropsHeader(name.toLowerCase())),
      );
      target = decision.url;
    }
  }

  async #preferHttps(url: URL, { service, signal }: FollowOptions): Promise<URL> {
    // A URL with a port is not changed: https would need another port.
    if (url.protocol !== "http:" || url.port !== "") return url;
    const known = this.#supportsTls.get(url.host) ?? this.#probeTls(url.host, service, signal);
    this.#supportsTls.set(url.host, known);
    if (!(await known)) return url;
    const secure = new URL(url);
    secure.protocol = "https:";
    return secure;
  }

  /**
   * Sends one HEAD request for each host and run. Its role is `landing`, so that a failure does not count for the circuits
   * of other roles.
   */
  async #probeTls(host: string, service: string | undefined, signal: AbortSignal | undefined): Promise<boolean> {
    try {
      const { body, statusCode } = await this.#hub.request(`https://${host}/`, {
        method: "HEAD",
        role: "landing",
        service,
        signal: signal ?? null,
        maxWaitMs: TLS_PROBE_TIMEOUT_MS,
        deadlineMs: TLS_PROBE_TIMEOUT_MS,
      });
      await body.dump();
      return statusCode < 500;
    } catch (error) {
      signal?.throwIfAborted();
      // A limit or an open circuit refused the probe. It would refuse http too, so https is used.
      return error instanceof RejectedError;
    }
  }
}

/** Statuses that show that a host serves other content over https than over http. */
const MISSING_OVER_HTTPS = new Set([404, 421]);
const TLS_PROBE_TIMEOUT_MS = 15_000;

import type { Dispatcher } from "undici";
import { DownloadError, RejectedError } from "../errors.ts";
import { fieldLine } from "../http/headers.ts";
import type { Hub } from "../http/hub.ts";
import type { CallOptions } from "../http/stages/stage.ts";

export interface FollowOptions extends Pick<CallOptions, "role" | "service" | "maxWaitMs" | "maxBreakerWaitMs"> {
  readonly method?: "GET" | "HEAD" | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

export interface FollowedResponse {
  readonly response: Dispatcher.ResponseData<unknown>;
  /** Where the redirects led. */
  readonly url: string;
  readonly hops: number;
}

/** Permanent URLs lead over a registry, a repository and a content network; nobody needs more. */
const REDIRECTS_MAX = 10;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Goes where an address leads, hop by hop, each one a call of its own at the host it goes to. The hub could follow by
 * itself; here the way matters: plain http is left where https works, and where it ended is written down.
 */
export class RedirectFollower {
  readonly #hub: Hub;
  /** By host: whether it answers over TLS. */
  readonly #secure = new Map<string, Promise<boolean>>();

  constructor(hub: Hub) {
    this.#hub = hub;
  }

  /** Rejects with a DownloadError for ways that lead nowhere, and with what the hub rejects with. */
  async follow(address: string, options: FollowOptions): Promise<FollowedResponse> {
    const { method = "GET", headers, signal, ...call } = options;
    const seen = new Set<string>();
    let url = new URL(address);
    for (let hops = 0; ; hops += 1) {
      url = await this.#preferHttps(url, options);
      if (seen.has(url.href)) throw new DownloadError(`${url.host} redirects in a circle`);
      if (hops > REDIRECTS_MAX)
        throw new DownloadError(`more than ${REDIRECTS_MAX} redirects, the last one to ${url.host}`);
      seen.add(url.href);
      const response = await this.#hub.request(url, {
        ...call,
        method,
        headers: { ...headers },
        signal: signal ?? null,
      });
      const location = fieldLine(response.headers["location"]);
      if (!REDIRECTS.has(response.statusCode) || location === undefined) return { response, url: url.href, hops };
      await response.body.dump();
      const next = URL.parse(location, url.href);
      if (next === null || (next.protocol !== "http:" && next.protocol !== "https:")) {
        throw new DownloadError(`${url.host} redirects to what is no http or https address`);
      }
      // Nobody is told who we are by a stranger, and where it ended is written down.
      next.username = "";
      next.password = "";
      url = next;
    }
  }

  async #preferHttps(url: URL, { service, signal }: FollowOptions): Promise<URL> {
    // A port that somebody wrote down is the one that is meant.
    if (url.protocol !== "http:" || url.port !== "") return url;
    const known = this.#secure.get(url.host) ?? this.#answersOverTls(url.host, service, signal);
    this.#secure.set(url.host, known);
    if (!(await known)) return url;
    const secure = new URL(url);
    secure.protocol = "https:";
    return secure;
  }

  /** One HEAD for each host and run, as a landing page: should it fail, no circuit of files or answers hears of it. */
  async #answersOverTls(host: string, service: string | undefined, signal: AbortSignal | undefined): Promise<boolean> {
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
      // Refused for a while: over http it would be refused as well, so that nothing is lost by staying secure.
      return error instanceof RejectedError;
    }
  }
}

const TLS_PROBE_TIMEOUT_MS = 15_000;

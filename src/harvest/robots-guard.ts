import { robotsFor } from "../core/text/robots.ts";
import type { MinSpeed } from "../files/speed-check.ts";
import type { Hub } from "../http/hub.ts";
import type { AttemptFailure } from "./attempt-failure.ts";
import { readText } from "./response-body.ts";

export interface RobotsGuardOptions {
  readonly hub: Pick<Hub, "request">;
  readonly maxWaitMs: number;
  /** A slower robots.txt is interrupted. */
  readonly minSpeed: MinSpeed;
}

type RobotsCheck = (url: string) => AttemptFailure | undefined;

/** RFC 9309 requires crawlers to read at least 500 KiB. */
const ROBOTS_BYTES_MAX = 512_000;
const REDIRECTS_MAX = 5;
const DEADLINE_MS = 30_000;
/** A run uses some hundred hosts; beyond this number the cache is cleared. */
const REMEMBERED_MAX = 2000;

/** Checks landing pages against robots.txt, which is requested once per origin. */
export class RobotsGuard {
  readonly #options: RobotsGuardOptions;
  readonly #rules = new Map<string, RobotsCheck>();
  readonly #loading = new Map<string, Promise<RobotsCheck>>();

  constructor(options: RobotsGuardOptions) {
    this.#options = options;
  }

  /** Undefined if the page may be requested. Rejects with a refusal of the hub or an error of the network. */
  async disallowReason(url: string, signal: AbortSignal): Promise<AttemptFailure | undefined> {
    const origin = URL.parse(url)?.origin ?? "";
    const known = this.#rules.get(origin);
    if (known !== undefined) return known(url);
    const loading = this.#loading.get(origin) ?? this.#load(origin, signal);
    this.#loading.set(origin, loading);
    try {
      return (await loading)(url);
    } finally {
      this.#loading.delete(origin);
    }
  }

  async #load(origin: string, signal: AbortSignal): Promise<RobotsCheck> {
    const { hub, maxWaitMs, minSpeed } = this.#options;
    const call = {
      role: "landing",
      maxWaitMs,
      deadlineMs: DEADLINE_MS,
      maxRedirections: REDIRECTS_MAX,
      signal,
    } as const;
    const response = await hub.request(`${origin}/robots.txt`, call);
    const { statusCode: status } = response;
    const { text } = await readText(response, ROBOTS_BYTES_MAX, minSpeed);
    // RFC 9309, 2.3.1.4: everything is disallowed while robots.txt fails. The result is not kept, so it is requested again.
    if (status >= 500 || status === 429) {
      return () => ({ reason: "robots", message: `robots.txt returned status ${status}`, status, mayRetry: true });
    }
    const robots = robotsFor("docstokg", status, text);
    const rules: RobotsCheck = url =>
      robots.allows(url) ? undefined : { reason: "robots", message: "disallowed by robots.txt", mayRetry: false };
    if (this.#rules.size >= REMEMBERED_MAX) this.#rules.clear();
    this.#rules.set(origin, rules);
    return rules;
  }
}

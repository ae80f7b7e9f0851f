import { robotsFor } from "../core/text/robots.ts";
import type { MinSpeed } from "../files/speed-check.ts";
import type { Hub } from "../http/hub.ts";
import { type KeptRobots, ROBOTS_KEPT_MS, type RobotsFile, robotsToKeep } from "../http/robots/kept-robots.ts";
import type { Time } from "../time/time.ts";
import type { AttemptFailure } from "./attempt-failure.ts";
import { readText } from "./response-body.ts";

export interface RobotsGuardOptions {
  readonly hub: Pick<Hub, "request">;
  readonly maxWaitMs: number;
  /** A slower robots.txt is interrupted. */
  readonly minSpeed: MinSpeed;
  /** Keeps each robots.txt for other processes and later runs. */
  readonly kept: KeptRobots;
  readonly time: Time;
}

type RobotsCheck = (url: string) => AttemptFailure | undefined;

interface KnownRules {
  readonly check: RobotsCheck;
  /** From then on robots.txt is requested again. */
  readonly untilUs: number;
}

/** RFC 9309 requires crawlers to read at least 500 KiB. */
const ROBOTS_BYTES_MAX = 512_000;
const REDIRECTS_MAX = 5;
const DEADLINE_MS = 30_000;
/** A run uses some hundred hosts; beyond this number the cache is cleared. */
const REMEMBERED_MAX = 2000;

/** Checks landing pages against robots.txt, which is requested once per origin and day, by all workers together. */
export class RobotsGuard {
  readonly #options: RobotsGuardOptions;
  readonly #rules = new Map<string, KnownRules>();
  readonly #loading = new Map<string, Promise<RobotsCheck>>();

  constructor(options: RobotsGuardOptions) {
    this.#options = options;
  }

  /** Undefined if the page may be requested. Rejects with a refusal of the hub or an error of the network. */
  async disallowReason(url: string, signal: AbortSignal): Promise<AttemptFailure | undefined> {
    const origin = URL.parse(url)?.origin ?? "";
    const known = this.#rules.get(origin);
    if (known !== undefined && known.untilUs > this.#options.time.monotonicUs()) return known.check(url);
    const loading = this.#loading.get(origin) ?? this.#load(origin, signal);
    this.#loading.set(origin, loading);
    try {
      return (await loading)(url);
    } finally {
      this.#loading.delete(origin);
    }
  }

  async #load(origin: string, signal: AbortSignal): Promise<RobotsCheck> {
    const { hub, maxWaitMs, minSpeed, kept } = this.#options;
    const found = await kept.find(origin);
    if (found !== undefined && found.ageMs < ROBOTS_KEPT_MS)
      return this.#remember(origin, found, ROBOTS_KEPT_MS - found.ageMs);
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
    const file = robotsToKeep(status, text);
    if (file === undefined)
      return () => ({ reason: "robots", message: `robots.txt returned status ${status}`, status, mayRetry: true });
    // The page need not wait until the file is saved. If that fails, another process or run requests it again.
    kept.save(origin, file).catch(() => undefined);
    return this.#remember(origin, file, ROBOTS_KEPT_MS);
  }

  #remember(origin: string, { status, text }: RobotsFile, forMs: number): RobotsCheck {
    const robots = robotsFor("docstokg", status, text);
    const check: RobotsCheck = url =>
      robots.allows(url) ? undefined : { reason: "robots", message: "disallowed by robots.txt", mayRetry: false };
    if (this.#rules.size >= REMEMBERED_MAX) this.#rules.clear();
    this.#rules.set(origin, { check, untilUs: this.#options.time.monotonicUs() + forMs * 1000 });
    return check;
  }
}

import type { Hub } from "../http/hub.ts";
import type { Trouble } from "./attempt-failure.ts";
import { readText } from "./response-body.ts";
import { robotsFor } from "./robots.ts";

export interface RobotsOptions {
  readonly hub: Pick<Hub, "request">;
  readonly maxWaitMs: number;
}

type Rules = (url: string) => Trouble | undefined;

/** RFC 9309 asks crawlers to read at least so much. */
const ROBOTS_BYTES_MAX = 512_000;
const HOPS_MAX = 5;
const DEADLINE_MS = 30_000;
/** A run meets some hundred publishers; one that meets more may ask again. */
const REMEMBERED_MAX = 2000;

/** What each host asks of visitors, asked for once, before the first of its pages. */
export class RobotsGuard {
  readonly #options: RobotsOptions;
  readonly #rules = new Map<string, Rules>();
  readonly #asking = new Map<string, Promise<Rules>>();

  constructor(options: RobotsOptions) {
    this.#options = options;
  }

  /** Why a page is not to be visited; undefined when it may be. Rejects with what the hub refuses, and what fails. */
  async objection(url: string, signal: AbortSignal): Promise<Trouble | undefined> {
    const origin = URL.parse(url)?.origin ?? "";
    const known = this.#rules.get(origin);
    if (known !== undefined) return known(url);
    const asking = this.#asking.get(origin) ?? this.#ask(origin, signal);
    this.#asking.set(origin, asking);
    try {
      return (await asking)(url);
    } finally {
      this.#asking.delete(origin);
    }
  }

  async #ask(origin: string, signal: AbortSignal): Promise<Rules> {
    const { hub, maxWaitMs } = this.#options;
    const call = { role: "landing", maxWaitMs, deadlineMs: DEADLINE_MS, maxRedirections: HOPS_MAX, signal } as const;
    const { statusCode: status, body } = await hub.request(`${origin}/robots.txt`, call);
    const { text } = await readText(body, ROBOTS_BYTES_MAX);
    // A host that cannot say what it wants is not visited (RFC 9309, 2.3.1.4), and asked again the next time.
    if (status >= 500 || status === 429) {
      return () => ({ reason: "robots", message: `its robots.txt answers ${status}`, status, mayPass: true });
    }
    const robots = robotsFor("docstokg", status, text);
    const rules: Rules = url =>
      robots.allows(url) ? undefined : { reason: "robots", message: "disallowed by robots.txt", mayPass: false };
    if (this.#rules.size >= REMEMBERED_MAX) this.#rules.clear();
    this.#rules.set(origin, rules);
    return rules;
  }
}

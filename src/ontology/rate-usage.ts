import { appendFile, mkdir, readFile, rename, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { HubEvent } from "../http/hub-options.ts";
import { serviceOfName } from "../policy/service-name.ts";

/** The rate limit usage of one key in one run. */
export interface KeyUsage {
  /** `service:host`. */
  readonly key: string;
  granted: number;
  refused: number;
  /** Sum of all waits, in milliseconds. */
  waitedMs: number;
  /** The longest wait, in milliseconds. */
  longestMs: number;
  /** How often a cooldown of the host was set. */
  cooldowns: number;
}

/** One line of `ratelimits.jsonl`: one run of one process. */
export interface RateUsageRun {
  readonly at: string;
  readonly pid: number;
  readonly command: string;
  readonly keys: readonly KeyUsage[];
}

/** The name of the file, in `shared_dir` or in the work folder of the store. */
export const RATE_USAGE_FILE = "ratelimits.jsonl";
/** A larger file is renamed to `.old`, so that it does not grow without end. */
const FILE_BYTES_MAX = 1_000_000;

/** Counts grants, refusals, waits and cooldowns by key from the events of a hub, for `ontofetch rl doctor`. */
export class RateUsageCounter {
  readonly #keys = new Map<string, KeyUsage>();

  readonly listen = (event: HubEvent): void => {
    if (event.event_type === "ratelimit.acquire") {
      const usage = this.#usageOf(serviceOfName(event.key) ?? event.key);
      if (event.outcome === "granted") usage.granted += 1;
      if (event.outcome === "refused") usage.refused += 1;
      addWait(usage, event.blocked_ms);
    } else if (event.event_type === "breaker_cooldown_set") {
      for (const usage of this.#ofHost(event.host)) usage.cooldowns += 1;
    } else if (event.event_type === "http_retry") {
      // The pause before another attempt, such as a Retry-After. It counts for one key only, so that sums over keys are right.
      const [usage] = this.#ofHost(event.host);
      if (usage !== undefined) addWait(usage, event.delay_ms);
    }
  };

  #ofHost(host: string): readonly KeyUsage[] {
    return [...this.#keys.values()].filter(({ key }) => key.endsWith(`:${host}`));
  }

  keys(): readonly KeyUsage[] {
    return [...this.#keys.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  #usageOf(key: string): KeyUsage {
    const known = this.#keys.get(key);
    if (known !== undefined) return known;
    const usage = { key, granted: 0, refused: 0, waitedMs: 0, longestMs: 0, cooldowns: 0 };
    this.#keys.set(key, usage);
    return usage;
  }
}

function addWait(usage: KeyUsage, waitedMs: number): void {
  usage.waitedMs += waitedMs;
  usage.longestMs = Math.max(usage.longestMs, waitedMs);
}

/** Appends one line by a single write, which the operating system does not mix with writes of other processes. */
export async function appendRateUsage(file: string, usage: RateUsageRun): Promise<void> {
  if (usage.keys.length === 0) return;
  await mkdir(dirname(file), { recursive: true });
  if ((await sizeOf(file)) > FILE_BYTES_MAX) await rotate(file);
  await appendFile(file, `${JSON.stringify(usage)}\n`);
}

/** The last runs, newest last. Invalid lines are skipped. */
export async function readRateUsage(file: string, runs: number): Promise<readonly RateUsageRun[]> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  const lines = text
    .split("\n")
    .filter(line => line !== "")
    .slice(-runs);
  return lines.flatMap(line => {
    try {
      const usage: Partial<RateUsageRun> | null = JSON.parse(line);
      return Array.isArray(usage?.keys) ? [{ ...(usage as RateUsageRun), keys: usage.keys.map(withWaitedMs) }] : [];
    } catch (error) {
      if (error instanceof SyntaxError) return [];
      throw error;
    }
  });
}

/** Earlier versions wrote `waitedMs` as `blockedMs`. */
function withWaitedMs({ blockedMs, ...usage }: KeyUsage & { readonly blockedMs?: number }): KeyUsage {
  return { ...usage, waitedMs: usage.waitedMs ?? blockedMs ?? 0 };
}

async function rotate(file: string): Promise<void> {
  try {
    await rename(file, `${file}.old`);
  } catch (error) {
    // Another process has renamed it already.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
}

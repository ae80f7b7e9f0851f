import { appendFile, mkdir, readFile, rename, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { HubEvent } from "../http/hub-options.ts";

/** What one key came to in one run. */
export interface KeyUsage {
  /** `service:host`. */
  readonly key: string;
  granted: number;
  refused: number;
  /** All waits together, and the longest of them. */
  blockedMs: number;
  longestMs: number;
  /** Pauses that a server asked for. */
  cooldowns: number;
}

/** A line of the file: one run of one process. */
export interface RateUsageRun {
  readonly at: string;
  readonly pid: number;
  readonly command: string;
  readonly keys: readonly KeyUsage[];
}

/** Old runs are of no use, and the file is everybody's. */
const FILE_BYTES_MAX = 1_000_000;

/** Listens to a hub and counts for each key what `rl doctor` tells. */
export class RateUsageCounter {
  readonly #keys = new Map<string, KeyUsage>();

  readonly listen = (event: HubEvent): void => {
    if (event.event_type === "ratelimit.acquire") {
      const usage = this.#at(event.key.replace(/^group /, ""));
      if (event.outcome === "granted") usage.granted += 1;
      if (event.outcome === "refused") usage.refused += 1;
      usage.blockedMs += event.blocked_ms;
      usage.longestMs = Math.max(usage.longestMs, event.blocked_ms);
    } else if (event.event_type === "breaker_cooldown_set") {
      for (const usage of this.#keys.values()) if (usage.key.endsWith(`:${event.host}`)) usage.cooldowns += 1;
    }
  };

  keys(): readonly KeyUsage[] {
    return [...this.#keys.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  #at(key: string): KeyUsage {
    const known = this.#keys.get(key);
    if (known !== undefined) return known;
    const usage = { key, granted: 0, refused: 0, blockedMs: 0, longestMs: 0, cooldowns: 0 };
    this.#keys.set(key, usage);
    return usage;
  }
}

/** One write at the end of the file, which systems do not mix with those of other processes. */
export async function appendRateUsage(file: string, usage: RateUsageRun): Promise<void> {
  if (usage.keys.length === 0) return;
  await mkdir(dirname(file), { recursive: true });
  if ((await sizeOf(file)) > FILE_BYTES_MAX) await rotate(file);
  await appendFile(file, `${JSON.stringify(usage)}\n`);
}

/** The last runs, newest last. Lines that are none are left out: another program may have written them. */
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
      return Array.isArray(usage?.keys) ? [usage as RateUsageRun] : [];
    } catch (error) {
      if (error instanceof SyntaxError) return [];
      throw error;
    }
  });
}

async function rotate(file: string): Promise<void> {
  try {
    await rename(file, `${file}.old`);
  } catch (error) {
    // Another process has just done it.
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

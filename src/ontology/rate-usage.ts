import { appendFile, mkdir, readFile, rename, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { HubEvent } from "../http/hub-options.ts";

/** What one key came to in one run. */
export interface KeyTally {
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
export interface RunTally {
  readonly at: string;
  readonly pid: number;
  readonly command: string;
  readonly keys: readonly KeyTally[];
}

/** Old runs are of no use, and the file is everybody's. */
const FILE_BYTES_MAX = 1_000_000;

/** Listens to a hub and counts for each key what `rl doctor` tells. */
export class RateTally {
  readonly #keys = new Map<string, KeyTally>();

  readonly listen = (event: HubEvent): void => {
    if (event.event_type === "ratelimit.acquire") {
      const tally = this.#at(event.key.replace(/^group /, ""));
      if (event.outcome === "granted") tally.granted += 1;
      if (event.outcome === "refused") tally.refused += 1;
      tally.blockedMs += event.blocked_ms;
      tally.longestMs = Math.max(tally.longestMs, event.blocked_ms);
    } else if (event.event_type === "breaker_cooldown_set") {
      for (const tally of this.#keys.values()) if (tally.key.endsWith(`:${event.host}`)) tally.cooldowns += 1;
    }
  };

  keys(): readonly KeyTally[] {
    return [...this.#keys.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  #at(key: string): KeyTally {
    const known = this.#keys.get(key);
    if (known !== undefined) return known;
    const tally = { key, granted: 0, refused: 0, blockedMs: 0, longestMs: 0, cooldowns: 0 };
    this.#keys.set(key, tally);
    return tally;
  }
}

/** One write at the end of the file, which systems do not mix with those of other processes. */
export async function appendTally(file: string, tally: RunTally): Promise<void> {
  if (tally.keys.length === 0) return;
  await mkdir(dirname(file), { recursive: true });
  if ((await sizeOf(file)) > FILE_BYTES_MAX) await setAside(file);
  await appendFile(file, `${JSON.stringify(tally)}\n`);
}

/** The last runs, newest last. Lines that are none are left out: another program may have written them. */
export async function readTallies(file: string, runs: number): Promise<readonly RunTally[]> {
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
      const tally: Partial<RunTally> | null = JSON.parse(line);
      return Array.isArray(tally?.keys) ? [tally as RunTally] : [];
    } catch (error) {
      if (error instanceof SyntaxError) return [];
      throw error;
    }
  });
}

async function setAside(file: string): Promise<void> {
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

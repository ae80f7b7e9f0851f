/** Contestants of the race that send requests, 64 at a time, and count the processor's time beside the clock's. */

import { median } from "../kit/statistics.ts";
import type { Contestant } from "../kit/timing.ts";
import { type Ask, askAll, CALLERS } from "./callers.ts";

export class Entrant implements Contestant {
  readonly name: string;
  readonly leastCalls = CALLERS * 4;
  readonly #ask: Ask;
  readonly #cpuUs: number[] = [];

  constructor(name: string, ask: Ask) {
    this.name = name;
    this.#ask = ask;
  }

  async run(calls: number): Promise<void> {
    const before = process.cpuUsage();
    await askAll(this.#ask, calls);
    const { user, system } = process.cpuUsage(before);
    this.#cpuUs.push((user + system) / calls);
  }

  /** Microseconds of this process for a request, collector and compiler included; of the rounds that counted. */
  cpuUs(rounds: number): number {
    return median(this.#cpuUs.slice(-rounds));
  }

  /** How many times as much as `other` in the same round. */
  cpuRatio(other: Entrant, rounds: number): number {
    const others = other.#cpuUs.slice(-rounds);
    return median(this.#cpuUs.slice(-rounds).map((us, round) => us / (others[round] ?? Number.NaN)));
  }
}

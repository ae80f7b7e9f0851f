/** Cases that send requests, 64 at a time, and measure CPU time and elapsed time. */

import { median } from "../kit/statistics.ts";
import type { TimedCase } from "../kit/timing.ts";
import { CALLERS, type SendOnce, sendAll } from "./callers.ts";

export class RequestCase implements TimedCase {
  readonly name: string;
  readonly leastCalls = CALLERS * 4;
  readonly #send: SendOnce;
  readonly #finish: () => Promise<void> | undefined;
  readonly #cpuUs: number[] = [];

  /** `finish` ends a sample, such as by writing what the requests have queued. */
  constructor(name: string, send: SendOnce, finish: () => Promise<void> | undefined = () => undefined) {
    this.name = name;
    this.#send = send;
    this.#finish = finish;
  }

  async run(calls: number): Promise<void> {
    const before = process.cpuUsage();
    await sendAll(this.#send, calls);
    await this.#finish();
    const { user, system } = process.cpuUsage(before);
    this.#cpuUs.push((user + system) / calls);
  }

  /** CPU microseconds of this process per request, with garbage collection and compilation, in the measured rounds. */
  cpuUs(rounds: number): number {
    return median(this.#cpuUs.slice(-rounds));
  }

  /** The ratio to `other`, taken within each round. */
  cpuRatio(other: RequestCase, rounds: number): number {
    const others = other.#cpuUs.slice(-rounds);
    return median(this.#cpuUs.slice(-rounds).map((us, round) => us / (others[round] ?? Number.NaN)));
  }
}

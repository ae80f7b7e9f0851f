/**
 * Nanoseconds per call of several contestants, taken in turns within one process.
 * The machine is noisy: a slow moment falls on everybody, and a ratio is taken within a round before the median over
 * the rounds, so that it survives what the nanoseconds themselves do not.
 */
import { collectGarbage } from "./heap.ts";
import { median } from "./statistics.ts";

export interface TimedCase {
  readonly name: string;
  /** The fewest calls that a sample makes sense with. @default 1 */
  readonly leastCalls?: number;
  /** Makes that many calls, and throws when one of them does not end as it should. */
  run(calls: number): void | Promise<void>;
}

export interface TimingOptions {
  readonly rounds: number;
  readonly sampleMs: number;
}

export class TimingResult {
  readonly #samplesNs = new Map<string, number[]>();

  add(name: string, ns: number): void {
    const samples = this.#samplesNs.get(name) ?? [];
    samples.push(ns);
    this.#samplesNs.set(name, samples);
  }

  ns(name: string): number {
    return median(this.#samples(name));
  }

  /** How many times as long as `other` a call takes. */
  ratio(name: string, other: string): number {
    const others = this.#samples(other);
    return median(this.#samples(name).map((ns, round) => ns / (others[round] ?? Number.NaN)));
  }

  #samples(name: string): readonly number[] {
    const samples = this.#samplesNs.get(name);
    if (samples === undefined) throw new RangeError(`${name} took no part in this race`);
    return samples;
  }
}

export function timingOptions(isQuick: boolean): TimingOptions {
  return isQuick ? { rounds: 5, sampleMs: 2 } : { rounds: 41, sampleMs: 10 };
}

/** Rounds that everybody runs unrecorded, after the calibration: code is still being compiled in them. */
const UNRECORDED_ROUNDS = 10;

export async function race(cases: readonly TimedCase[], options: TimingOptions): Promise<TimingResult> {
  const calls = new Map<TimedCase, number>();
  // Twice: the first time measures code that is not compiled yet.
  for (const timedCase of [...cases, ...cases]) calls.set(timedCase, await callsPerSample(timedCase, options.sampleMs));
  const result = new TimingResult();
  for (let round = -UNRECORDED_ROUNDS; round < options.rounds; round += 1) {
    // Whoever comes next pays for some of what one left behind; so it is somebody else each time.
    for (const timedCase of shuffled(cases)) {
      const count = calls.get(timedCase) ?? 1;
      // A minor collection only: full ones, forced one after the other, make the engine throw compiled code away.
      collectGarbage("minor");
      const ns = (await elapsedMs(timedCase, count)) * (1e6 / count);
      if (round >= 0) result.add(timedCase.name, ns);
    }
  }
  return result;
}

function shuffled<Item>(items: readonly Item[]): readonly Item[] {
  return items
    .map(item => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

async function callsPerSample(timedCase: TimedCase, sampleMs: number): Promise<number> {
  const { leastCalls = 1 } = timedCase;
  let calls = leastCalls;
  for (;;) {
    // The best of three: one pause of the machine would pass for many calls, and leave samples of very few.
    const ms = Math.min(
      await elapsedMs(timedCase, calls),
      await elapsedMs(timedCase, calls),
      await elapsedMs(timedCase, calls),
    );
    if (ms >= sampleMs / 2) return Math.max(leastCalls, Math.round((calls * sampleMs) / ms));
    calls *= 2;
  }
}

async function elapsedMs(timedCase: TimedCase, calls: number): Promise<number> {
  const startMs = performance.now();
  // Not awaited unless there is a promise: a synchronous contestant is not to pay for a turn of the queue.
  const running = timedCase.run(calls);
  if (running instanceof Promise) await running;
  return performance.now() - startMs;
}

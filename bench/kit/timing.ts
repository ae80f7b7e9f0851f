/**
 * Nanoseconds per call of several contestants, taken in turns within one process.
 * The machine is noisy: a slow moment falls on everybody, and a ratio is taken within a round before the median over
 * the rounds, so that it survives what the nanoseconds themselves do not.
 */
import { collectGarbage } from "./heap.ts";
import { median } from "./statistics.ts";

export interface Contestant {
  readonly name: string;
  /** The fewest calls that a sample makes sense with. @default 1 */
  readonly leastCalls?: number;
  /** Makes that many calls, and throws when one of them does not end as it should. */
  run(calls: number): void | Promise<void>;
}

export interface RaceOptions {
  readonly rounds: number;
  readonly sampleMs: number;
}

export class RaceResult {
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

export function raceOptions(isQuick: boolean): RaceOptions {
  return isQuick ? { rounds: 5, sampleMs: 2 } : { rounds: 41, sampleMs: 10 };
}

/** Rounds that everybody runs unrecorded, after the calibration: code is still being compiled in them. */
const UNRECORDED_ROUNDS = 10;

export async function race(contestants: readonly Contestant[], options: RaceOptions): Promise<RaceResult> {
  const calls = new Map<Contestant, number>();
  // Twice: the first time measures code that is not compiled yet.
  for (const contestant of [...contestants, ...contestants])
    calls.set(contestant, await callsPerSample(contestant, options.sampleMs));
  const result = new RaceResult();
  for (let round = -UNRECORDED_ROUNDS; round < options.rounds; round += 1) {
    // Whoever comes next pays for some of what one left behind; so it is somebody else each time.
    for (const contestant of shuffled(contestants)) {
      const count = calls.get(contestant) ?? 1;
      // A minor collection only: full ones, forced one after the other, make the engine throw compiled code away.
      collectGarbage("minor");
      const ns = (await elapsedMs(contestant, count)) * (1e6 / count);
      if (round >= 0) result.add(contestant.name, ns);
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

async function callsPerSample(contestant: Contestant, sampleMs: number): Promise<number> {
  const { leastCalls = 1 } = contestant;
  let calls = leastCalls;
  for (;;) {
    // The best of three: one pause of the machine would pass for many calls, and leave samples of very few.
    const ms = Math.min(
      await elapsedMs(contestant, calls),
      await elapsedMs(contestant, calls),
      await elapsedMs(contestant, calls),
    );
    if (ms >= sampleMs / 2) return Math.max(leastCalls, Math.round((calls * sampleMs) / ms));
    calls *= 2;
  }
}

async function elapsedMs(contestant: Contestant, calls: number): Promise<number> {
  const startMs = performance.now();
  // Not awaited unless there is a promise: a synchronous contestant is not to pay for a turn of the queue.
  const running = contestant.run(calls);
  if (running instanceof Promise) await running;
  return performance.now() - startMs;
}

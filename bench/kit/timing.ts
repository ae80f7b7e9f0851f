/**
 * Nanoseconds per call of several cases, measured in turns within one process. Ratios are taken within a round, then
 * their median over the rounds: a slow moment of the machine affects all cases of a round, so ratios are more reliable
 * than the times themselves.
 */
import { collectGarbage } from "./heap.ts";
import { median } from "./statistics.ts";

export interface TimedCase {
  readonly name: string;
  /** Minimum number of calls of a sample. @default 1 */
  readonly leastCalls?: number;
  /** Makes that many calls; throws if one of them has an unexpected result. */
  run(calls: number): void | Promise<void>;
}

export interface TimingOptions {
  readonly rounds: number;
  readonly sampleMs: number;
  /** Counts the processor time of this thread: for cases that never wait, so that other programs do not matter. @default false */
  readonly isCpuTime?: boolean;
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

  /** The duration of a call, divided by that of `other`. */
  ratio(name: string, other: string): number {
    const others = this.#samples(other);
    return median(this.#samples(name).map((ns, round) => ns / (others[round] ?? Number.NaN)));
  }

  #samples(name: string): readonly number[] {
    const samples = this.#samplesNs.get(name);
    if (samples === undefined) throw new RangeError(`${name} was not measured`);
    return samples;
  }
}

export function timingOptions(isQuick: boolean): TimingOptions {
  return isQuick ? { rounds: 5, sampleMs: 2 } : { rounds: 41, sampleMs: 10 };
}

/** Rounds after the calibration that are not recorded, because code is still being compiled. */
const UNRECORDED_ROUNDS = 10;

export async function race(cases: readonly TimedCase[], options: TimingOptions): Promise<TimingResult> {
  const calls = new Map<TimedCase, number>();
  // Twice: the first time measures code that is not compiled yet.
  for (const timedCase of [...cases, ...cases]) calls.set(timedCase, await callsPerSample(timedCase, options));
  const result = new TimingResult();
  for (let round = -UNRECORDED_ROUNDS; round < options.rounds; round += 1) {
    // The order changes: a case pays for some of the garbage of the case before it.
    for (const timedCase of shuffled(cases)) {
      const count = calls.get(timedCase) ?? 1;
      // Only a minor collection: repeated full collections make V8 discard compiled code.
      collectGarbage("minor");
      const ns = (await elapsedMs(timedCase, count, options)) * (1e6 / count);
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

async function callsPerSample(timedCase: TimedCase, options: TimingOptions): Promise<number> {
  const { sampleMs } = options;
  const { leastCalls = 1 } = timedCase;
  let calls = leastCalls;
  for (;;) {
    // The best of three: a pause of the machine would look like slow calls, and the samples would become too small.
    const ms = Math.min(
      await elapsedMs(timedCase, calls, options),
      await elapsedMs(timedCase, calls, options),
      await elapsedMs(timedCase, calls, options),
    );
    if (ms >= sampleMs / 2) return Math.max(leastCalls, Math.round((calls * sampleMs) / ms));
    calls *= 2;
  }
}

async function elapsedMs(timedCase: TimedCase, calls: number, { isCpuTime = false }: TimingOptions): Promise<number> {
  const nowMs = isCpuTime ? threadMs : () => performance.now();
  const startMs = nowMs();
  // Awaited only if it is a promise: a synchronous case must not pay for a microtask.
  const running = timedCase.run(calls);
  if (running instanceof Promise) await running;
  return nowMs() - startMs;
}

/** Processor time of this thread. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/**
 * The ratio of two cases that differ by a few per cent: they are timed one after the other in many short rounds. The
 * processor time of this thread is compared, so other programs and V8's own threads do not count.
 */
import { collectGarbage } from "./heap.ts";
import { median } from "./statistics.ts";
import type { TimedCase } from "./timing.ts";

export interface PairedOptions {
  readonly rounds: number;
  /** Calls of a sample. */
  readonly calls: number;
}

/** Rounds that are not recorded, because code is still being compiled. */
const UNRECORDED_ROUNDS = 40;

/** The processor time of `first`, divided by that of `second`: the median of the rounds. */
export async function pairedRatio(
  first: TimedCase,
  second: TimedCase,
  { rounds, calls }: PairedOptions,
): Promise<number> {
  const ratios: number[] = [];
  for (let round = -UNRECORDED_ROUNDS; round < rounds; round += 1) {
    // In turns: a case pays for some of the garbage of the case before it.
    const isFirst = round % 2 === 0;
    const before = await threadUs(isFirst ? first : second, calls);
    const after = await threadUs(isFirst ? second : first, calls);
    if (round >= 0) ratios.push(isFirst ? before / after : after / before);
  }
  return median(ratios);
}

async function threadUs(timedCase: TimedCase, calls: number): Promise<number> {
  collectGarbage("minor");
  const before = process.threadCpuUsage();
  await timedCase.run(calls);
  const { user, system } = process.threadCpuUsage(before);
  return user + system;
}

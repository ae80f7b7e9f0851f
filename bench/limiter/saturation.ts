/** 200 callers that always want more than the limit of 50 per second: is the limit used fully, and never exceeded? */
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { atLeast, atMost } from "../kit/report.ts";
import { LIMIT, type Sender, senders, WINDOW_MS } from "./senders.ts";

interface SaturationResult {
  /** 1 if LIMIT requests start in each period. */
  readonly utilisation: number;
  readonly starts: number;
  readonly permitted: number;
  readonly mostInAnyWindow: number;
  /**
   * Time by which the closest LIMIT + 1 starts exceed a window; below 0 they all fell into one window, one too many.
   */
  readonly marginMs: number;
}

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const callers = isQuick ? 60 : 200;
  const periods = isQuick ? 2 : 5;
  const outcomes: (SaturationResult & Sender)[] = [];
  for (const sender of senders()) {
    const periodMs = WINDOW_MS + sender.guardMs;
    // Half a period more, so that the count does not depend on the side of a boundary on which the last burst fell.
    const startsMs = await saturate(sender, callers, (periods + 0.5) * periodMs);
    outcomes.push({ ...sender, ...outcomeOf(startsMs, periodMs, periods) });
  }
  const rows = outcomes.map(({ name, utilisation, starts, permitted, mostInAnyWindow, marginMs }) => [
    name,
    utilisation * 100,
    starts,
    permitted,
    mostInAnyWindow,
    marginMs,
  ]);
  const title = `${LIMIT} per ${WINDOW_MS} ms, ${callers} callers always waiting, ${periods}.5 periods`;
  const notes = [
    "a period is the window and the guard; the other libraries have no guard",
    `utilisation: periods / (time from the first start to start number ${LIMIT} x periods + 1, in periods)`,
    `permitted: ${LIMIT} x (whole periods + 1), the most requests that keep every window`,
    "most in any window: by the clock of the callers, to the microsecond",
    `margin: time by which the closest ${LIMIT + 1} starts exceed a window; below 0 they all fell into one`,
  ];
  const columns = ["sender", "utilisation %", "starts", "permitted", "most in any window", "margin ms"];
  const ours = outcomes.filter(({ isOurs }) => isOurs);
  const figures = [
    ...ours.map(({ name, utilisation }) => atLeast(`${name}: utilisation, %`, utilisation * 100, 99)),
    // A caller resumes slightly after its grant was stamped, so two bursts may be slightly too close. The guard covers
    // that; the rows without a guard show the difference.
    ...ours
      .filter(({ guardMs }) => guardMs > 0)
      .map(({ name, mostInAnyWindow }) => atMost(`${name}: most in any window`, mostInAnyWindow, LIMIT)),
  ];
  return { tables: [{ title, notes, columns, rows }], figures };
}

/** The times at which requests started, in milliseconds. Waits until the calls that are queued at the end are done. */
async function saturate(sender: Sender, callers: number, forMs: number): Promise<readonly number[]> {
  const startsMs: number[] = [];
  const untilMs = performance.now() + forMs;
  const call = async () => {
    while (performance.now() < untilMs) await sender.send(() => startsMs.push(performance.now()));
  };
  await Promise.all(Array.from({ length: callers }, call));
  return startsMs.filter(startMs => startMs <= untilMs).sort((a, b) => a - b);
}

function outcomeOf(startsMs: readonly number[], periodMs: number, periods: number): SaturationResult {
  const [firstMs = 0] = startsMs;
  // A sender that started fewer requests is judged by the complete periods that it has.
  const reached = Math.min(periods, Math.floor((startsMs.length - 1) / LIMIT));
  const tookMs = (startsMs[reached * LIMIT] ?? firstMs) - firstMs;
  let mostInAnyWindow = 0;
  let tightestMs = Number.POSITIVE_INFINITY;
  let oldest = 0;
  for (const [index, startMs] of startsMs.entries()) {
    while (startMs - (startsMs[oldest] ?? startMs) >= WINDOW_MS) oldest += 1;
    mostInAnyWindow = Math.max(mostInAnyWindow, index - oldest + 1);
    const before = startsMs[index - LIMIT];
    if (before !== undefined) tightestMs = Math.min(tightestMs, startMs - before);
  }
  return {
    utilisation: (reached * periodMs) / tookMs,
    starts: startsMs.length,
    permitted: LIMIT * (periods + 1),
    mostInAnyWindow,
    marginMs: tightestMs - WINDOW_MS,
  };
}

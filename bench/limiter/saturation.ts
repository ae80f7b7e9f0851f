/** Two hundred callers who always want more than fifty a second: how much of what is allowed is used, and never more? */
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { atLeast, atMost } from "../kit/report.ts";
import { LIMIT, type Sender, senders, WINDOW_MS } from "./senders.ts";

interface SaturationResult {
  /** Whether the sender kept up: 1 where it starts LIMIT requests per window for as long as it runs. */
  readonly utilisation: number;
  readonly starts: number;
  readonly permitted: number;
  readonly mostInAnyWindow: number;
  /** How far beyond a window the closest LIMIT + 1 starts reach; below 0 they fit into one, which is one too many. */
  readonly marginMs: number;
}

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const callers = isQuick ? 60 : 200;
  const periods = isQuick ? 2 : 5;
  const outcomes: (SaturationResult & Sender)[] = [];
  for (const sender of senders()) {
    const periodMs = WINDOW_MS + sender.guardMs;
    // Half a period more, so that no count hangs on which side of a boundary the last burst fell.
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
    "a period is the window and the guard; the peers have no guard",
    `utilisation: periods / (time from the first start to start number ${LIMIT} x periods + 1, in periods)`,
    `permitted: ${LIMIT} x (whole periods + 1), the most that any sender may start who keeps every window`,
    "most in any window: by the clock of the callers, to the microsecond",
    `margin: how far the closest ${LIMIT + 1} starts reach beyond a window; below 0 they all fell into one`,
  ];
  const columns = ["sender", "utilisation %", "starts", "permitted", "most in any window", "margin ms"];
  const ours = outcomes.filter(({ isOurs }) => isOurs);
  const figures = [
    ...ours.map(({ name, utilisation }) => atLeast(`${name}: utilisation, %`, utilisation * 100, 99)),
    // A caller resumes a little after its grant was stamped, which may put two bursts a hair's breadth too close. The
    // guard is there for that; without one the table shows what it is worth.
    ...ours
      .filter(({ guardMs }) => guardMs > 0)
      .map(({ name, mostInAnyWindow }) => atMost(`${name}: most in any window`, mostInAnyWindow, LIMIT)),
  ];
  return { tables: [{ title, notes, columns, rows }], figures };
}

/** When requests started, in milliseconds. Those still waiting at the end are served before the next sender's turn. */
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
  // A sender that did not get that far is judged by the whole periods' worth that it did.
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

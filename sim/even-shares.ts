/** Measures how evenly and how fully processes with constant demand use one shared limit. */

import type { CallPlan, Plan, ProcessPlan } from "./plan.ts";
import { Random } from "./random.ts";
import { simulate } from "./simulate.ts";

export interface EvenShares {
  /** (maximum - minimum) / mean of the units that the processes of one world wrote. */
  readonly spread: SampleMean;
  /** Units written / units that the windows allow. */
  readonly utilisation: SampleMean;
}

/** A mean over worlds, with its standard error and its extremes. */
export interface SampleMean {
  readonly mean: number;
  readonly error: number;
  readonly lowest: number;
  readonly highest: number;
}

const PROCESSES = 4;
const LIMIT = 8;
const WINDOW_MS = 1000;
const GUARD_MS = 25;
/** The measured interval: all processes have started before it, and all still have calls at its end. */
const FROM_MS = 2000;
const UNTIL_MS = 12_000;

/** Simulates `worlds` worlds, each with different store delays, start times and clocks. */
export async function evenShares(worlds: number): Promise<EvenShares> {
  const spreads: number[] = [];
  const utilisations: number[] = [];
  for (let seed = 1; seed <= worlds; seed += 1) {
    const counts = await unitsOf(drawSaturated(seed));
    const total = counts.reduce((sum, count) => sum + count, 0);
    spreads.push((Math.max(...counts) - Math.min(...counts)) / (total / counts.length));
    utilisations.push(total / (((UNTIL_MS - FROM_MS) / (WINDOW_MS + GUARD_MS)) * LIMIT));
  }
  return { spread: sampleMean(spreads), utilisation: sampleMean(utilisations) };
}

async function unitsOf(plan: Plan): Promise<readonly number[]> {
  const counts = plan.processes.map(() => 0);
  const { violations } = await simulate(plan, fact => {
    if (fact.kind !== "written" || fact.atUs < FROM_MS * 1000 || fact.atUs >= UNTIL_MS * 1000) return;
    counts[fact.request.process] = (counts[fact.request.process] ?? 0) + fact.request.units;
  });
  const [broken] = violations;
  if (broken !== undefined) throw new Error(`seed ${plan.seed}: ${broken.law}: ${broken.message}`);
  return counts;
}

function drawSaturated(seed: number): Plan {
  const random = new Random(seed, 40);
  const processes = Array.from(
    { length: PROCESSES },
    (): ProcessPlan => ({ originUs: random.pick([0, 987_654_321_000]), wallOffsetMs: 0, earlyUs: 500, computeUs: 0 }),
  );
  return {
    seed,
    network: { delayMs: 5, jitterMs: 5, connectMs: 1, coldMs: 0, keepAliveMs: 60_000, headersTimeoutMs: 8000 },
    hosts: [
      {
        name: "host-0.test",
        roleLimits: {
          metadata: {
            rates: [{ limit: LIMIT, windowMs: WINDOW_MS }],
            maxDelayMs: 600_000,
            maxConcurrent: 100,
            countsHead: true,
          },
        },
        total: [],
        credits: undefined,
        guardMs: GUARD_MS,
        isSmooth: false,
        server: {
          model: "sliding-log",
          enforcedShare: 1,
          enforcesConcurrency: false,
          serviceMs: 10,
          announces: "nothing",
          maxAgeS: 0,
          wallOffsetMs: 0,
        },
      },
    ],
    breakers: {
      failMax: 5,
      resetS: 10,
      trialCalls: 1,
      jitterMs: 0,
      retryAfterCapS: 20,
      isAdaptive: false,
      rolling: undefined,
    },
    processes,
    store: { whenAway: "share", delayMs: random.pick([0, 1, 5]), jitterMs: random.pick([0, 2, 20]) },
    retryAttempts: 1,
    unreadBodyMs: 500,
    maxInFlight: 500,
    isAimd: false,
    startsWithTotals: true,
    calls: processes.flatMap((_, process) => drawCalls(random, process)),
    faults: [],
  };
}

/** All calls of a process at one instant, twice as many as its share until the end. */
function drawCalls(random: Random, process: number): readonly CallPlan[] {
  const atMs = random.whole(0, WINDOW_MS / 2);
  const count = Math.ceil((2 * LIMIT * UNTIL_MS) / WINDOW_MS / PROCESSES);
  return Array.from({ length: count }, (_, index) => {
    const id = process * count + index;
    return {
      ...{ id, atMs, process, host: "host-0.test", role: "metadata", method: "GET", page: id, weight: 1 },
      ...{ credits: undefined, usedCredits: 0, bodyMs: 0 },
      ...{ maxWaitMs: Number.POSITIVE_INFINITY, deadlineMs: undefined, abortMs: undefined, isRead: true },
    };
  });
}

function sampleMean(values: readonly number[]): SampleMean {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  const error = Math.sqrt(variance / values.length);
  return { mean, error, lowest: Math.min(...values), highest: Math.max(...values) };
}

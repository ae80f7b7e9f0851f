/**
 * The shared budget is implemented in TypeScript, in Lua and in PL/pgSQL. Random traces of exchanges, and the replies of
 * the implementation in TypeScript.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { SharedBudget } from "../../src/core/limits/shared-budget.ts";
import { type Budgets, leaseAll, reportAll, settleAll } from "../../src/stores/exchange.ts";
import type { LeaseReply, LeaseRequest, Settlement, StoreClaim, UseReport } from "../../src/stores/store.ts";

export const SECOND = 1_000_000;
/** How long a silent process keeps its units in the traces, in microseconds. */
export const LEASE = 5 * SECOND;
const PROCESSES = ["a", "b", "c", "d"] as const;

class PlainBudgets implements Budgets {
  readonly #budgets = new Map<string, SharedBudget>();

  find(key: string): SharedBudget | undefined {
    return this.#budgets.get(key);
  }

  open(key: string): SharedBudget {
    const budget = this.#budgets.get(key) ?? new SharedBudget();
    this.#budgets.set(key, budget);
    return budget;
  }
}

const KEY_CHAINS = [["x"], ["x", "total"], ["y", "total"], ["total"]];

interface TraceShape {
  readonly limit: fc.Arbitrary<number>;
  readonly afterUs: fc.Arbitrary<number>;
  readonly chain: fc.Arbitrary<readonly string[]>;
  /** Some steps report units, and all ask for the use; the store may have lost its data. @default none */
  readonly reports?: fc.Arbitrary<readonly Report[]>;
}

interface Report {
  readonly key: "x" | "y" | "total";
  readonly sent: number;
  readonly sentAgoUs: number;
  readonly known: readonly number[];
  readonly knownAgoUs: number | undefined;
}

/** A wide range of limits and delays. */
export const mixed: TraceShape = {
  limit: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 10, max: 60 }), fc.integer({ min: 180, max: 900 })),
  afterUs: fc.oneof(
    fc.constant(0),
    fc.integer({ min: 0, max: 30_000 }),
    fc.integer({ min: 0, max: 900_000 }),
    fc.integer({ min: 0, max: 7 * SECOND }),
  ),
  chain: fc.constantFrom(...KEY_CHAINS),
};

/** Several processes compete for few units of one budget, so that the order of waiting processes decides. */
export const crowded: TraceShape = {
  limit: fc.integer({ min: 1, max: 6 }),
  afterUs: fc.oneof(fc.constantFrom(0, 1000, 19_999, 20_000), fc.integer({ min: 0, max: 2_200_000 })),
  chain: fc.constantFrom(["x"], ["x"], ["x", "total"]),
};

/** As `mixed`, with what processes report after an outage of the store. */
export const reporting: TraceShape = {
  ...mixed,
  reports: fc.array(
    fc.record({
      key: fc.constantFrom("x", "x", "y", "total"),
      sent: fc.constantFrom(0, 1, 3, 40),
      sentAgoUs: fc.constantFrom(0, 1, 300_000, 2 * SECOND),
      known: fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 3 }),
      knownAgoUs: fc.constantFrom(undefined, 1, 500_000, 10 * SECOND),
    }),
    { maxLength: 30 },
  ),
};

function claimsAt({ limit }: TraceShape) {
  const rate = fc.record({
    limit,
    windowUs: fc.constantFrom(SECOND, 3 * SECOND, 20 * SECOND),
    stretch: fc.constantFrom(1, 1, 1.25),
  });
  return fc
    .record({
      rates: fc.uniqueArray(rate, { minLength: 1, maxLength: 3, selector: ({ windowUs }) => windowUs }),
      spacingUs: fc.constantFrom(0, 0, 0, 0, 130_000),
    })
    .map(({ rates, spacingUs }) => ({
      windows: rates.map(({ limit: most, windowUs, stretch }) => ({
        limit: most,
        windowUs,
        spanUs: windowUs * stretch,
      })),
      spacingUs,
    }));
}

function stepAt({ afterUs, chain }: TraceShape) {
  const wanted = fc.record({
    chain,
    least: fc.constantFrom(1, 1, 1, 2, 5),
    more: fc.constantFrom(0, 0, 1, 7, 300),
    aheadMs: fc.constantFrom(0, 0, 1, 250, 900),
  });
  return fc.record({
    process: fc.constantFrom(...PROCESSES),
    afterUs,
    writtenParts: fc.constantFrom(0, 0.5, 1, 1),
    returnedParts: fc.constantFrom(0, 0, 0.5, 1),
    asks: fc.array(wanted, { maxLength: 3 }),
    policy: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
    dead: fc.oneof({ weight: 9, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: fc.subarray([...PROCESSES]) }),
  });
}

/** The implementation under test: one exchange of a process at an instant. */
export type TracedExchange = (
  process: string,
  nowUs: number,
  settlements: readonly Settlement[],
  requests: readonly LeaseRequest[],
  reports: readonly UseReport[],
  dead: readonly string[],
) => Promise<readonly LeaseReply[]>;

/** Runs random traces; `begin` is called with each one, and gives an implementation without any state. */
export async function assertSame(
  begin: () => TracedExchange | Promise<TracedExchange>,
  pace: TraceShape,
  numRuns: number,
  seed?: number,
): Promise<void> {
  const claims = claimsAt(pace);
  const two = fc.tuple(claims, claims);
  await fc.assert(
    fc.asyncProperty(
      fc.array(stepAt(pace), { minLength: 1, maxLength: 80 }),
      fc.record({ x: two, y: two, total: two }),
      pace.reports ?? fc.constant([]),
      async (steps, policies, news) => {
        const exchange = await begin();
        const budgets = new PlainBudgets();
        const held = new Map<string, number>();
        let nowUs = 1_700_000_000_000_000;
        for (const [step, { process, afterUs, writtenParts, returnedParts, asks, policy, dead }] of steps.entries()) {
          nowUs += afterUs;
          const settlements: Settlement[] = [];
          for (const chain of KEY_CHAINS) {
            const holder = `${process} ${chain}`;
            const leased = held.get(holder) ?? 0;
            const written = Math.ceil(leased * writtenParts);
            const returned = Math.floor((leased - written) * returnedParts);
            if (leased === 0) continue;
            settlements.push({ keys: chain, written, returned });
            held.set(holder, leased - written - returned);
          }
          const questions = asks.map(
            ({ chain, least, more, aheadMs }): LeaseRequest => ({
              aheadMs,
              claims: chain.map((key): StoreClaim => ({ key, ...policies[key as "x"][policy as 0] })),
              least,
              most: least + more,
              ...(pace.reports !== undefined && { wantsUse: true }),
            }),
          );
          // Every second step, so that there is something to report about.
          const reports = news
            .slice(step / 2, step / 2 + (step % 2))
            .map(({ key, sent, sentAgoUs, known, knownAgoUs }) => ({
              claim: { key, knownAgoUs, ...policies[key][0] },
              keys: [key],
              sent,
              sentAgoUs,
              known: known.slice(0, policies[key][0].windows.length),
            }));
          const context = { process, nowUs, leaseUs: LEASE, dead };
          settleAll(budgets, settlements, context);
          reportAll(budgets, reports, context);
          const expected = leaseAll(budgets, questions, context);
          assert.deepEqual(await exchange(process, nowUs, settlements, questions, reports, dead), expected);
          for (const [index, { chain }] of asks.entries()) {
            const answer = expected[index];
            const holder = `${process} ${chain}`;
            if (answer?.kind === "granted") held.set(holder, (held.get(holder) ?? 0) + answer.units);
          }
        }
      },
    ),
    { numRuns, ...(seed !== undefined && { seed }) },
  );
}

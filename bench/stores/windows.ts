/** The cost of an exchange with full windows of 10 to 30,000 units: the size must not matter. */

import { RedisStore } from "../../src/stores/redis/redis-store.ts";
import { SqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { BudgetStore, LeaseRequest, StoreClaim } from "../../src/stores/store.ts";
import { SystemTime } from "../../src/time/system-time.ts";
import type { Timer } from "../../src/time/time.ts";
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { atMost, type BenchTable, type Figure } from "../kit/report.ts";
import { race, type TimedCase, type TimingOptions, type TimingResult } from "../kit/timing.ts";
import { acquireEach, one, writeUnits } from "./acquire.ts";
import { openFolder } from "./folder.ts";
import { openPeer, PEER_COLUMNS, SINGLE, UNION } from "./peer.ts";
import { noServer, openServer } from "./server.ts";

const LIMITS = [10, 100, 1000, 10_000, 30_000] as const;
const LEAST = LIMITS[0];
const MOST = 30_000;
const TIMES_MAX = 1.3;
/** So short that each unit has left the window before the next one; its stamps are still looked up. */
const SPENT_US = 1;
const HOUR_US = 3_600_000_000;
/** Many callers on Redis, so that the work of the server counts and not the round trip; each caller has its own key. */
const REDIS_CALLERS = 64;

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const options = isQuick ? { rounds: 3, sampleMs: 10 } : { rounds: 31, sampleMs: 40 };
  const reports = [await sqlite(options), await redis(options)];
  return {
    tables: reports.flatMap(({ tables }) => tables),
    figures: reports.flatMap(({ figures }) => figures),
  };
}

async function sqlite(options: TimingOptions): Promise<PartReport> {
  using folder = openFolder();
  const store = await SqliteStore.open(folder.file("windows.db"), { time: new ImmediateTimersTime() });
  const result = await race(await ourEntrants(store, 1), options);
  await store.close();
  return reportOf("SQLite, one caller, without the pauses between transactions", "SQLite", result, new Map());
}

async function redis(options: TimingOptions): Promise<PartReport> {
  await using server = await openServer();
  if (server === undefined) return noServer();
  // Each refusal comes from the server: one from memory costs nothing.
  const store = await RedisStore.open(server.url, { trustMs: 0 });
  const peer = await openPeer(server.url);
  const peers = [
    entrant(SINGLE, REDIS_CALLERS, caller => peer.single(`key ${caller}`)),
    entrant(UNION, REDIS_CALLERS, caller => peer.union(`key ${caller}`)),
  ];
  const result = await race([...peers, ...(await ourEntrants(store, REDIS_CALLERS))], options);
  peer.close();
  await store.close();
  const title = `Redis, ${REDIS_CALLERS} callers, each with a key of its own`;
  return reportOf(title, "Redis", result, PEER_COLUMNS);
}

function givenName(limit: number): string {
  return `given, limit ${limit.toLocaleString("en")}`;
}

function refusedName(limit: number): string {
  return `refused, limit ${limit.toLocaleString("en")}`;
}

async function ourEntrants(store: BudgetStore, callers: number): Promise<readonly TimedCase[]> {
  const entrants: TimedCase[] = [];
  for (const limit of LIMITS) {
    const given = await fullClaims(store, "given", limit, SPENT_US, callers);
    const refused = (await fullClaims(store, "refused", limit, HOUR_US, callers)).map(one);
    const refuse = async (caller: number) => {
      const [answer] = await store.exchange([], [refused[caller] as LeaseRequest]);
      if (answer?.kind !== "wait") throw new Error(`expected a refusal, not ${JSON.stringify(answer)}`);
    };
    entrants.push(entrant(givenName(limit), callers, acquireEach(store, given, callers)));
    entrants.push(entrant(refusedName(limit), callers, refuse));
  }
  return entrants;
}

/** Two full windows for each caller. */
async function fullClaims(
  store: BudgetStore,
  name: string,
  limit: number,
  windowUs: number,
  callers: number,
): Promise<readonly StoreClaim[]> {
  const windows = [windowUs, 2 * windowUs].map(us => ({ limit, windowUs: us, spanUs: us }));
  const claims = Array.from({ length: callers }, (_, caller) => ({
    key: `${name} ${limit} ${caller}`,
    windows,
    spacingUs: 0,
  }));
  for (const claim of claims) await writeUnits(store, claim, [limit / 2, limit / 2]);
  return claims;
}

function entrant(name: string, callers: number, call: (caller: number) => Promise<unknown>): TimedCase {
  return {
    name,
    leastCalls: callers * 4,
    async run(calls) {
      let left = calls;
      const caller = async (index: number) => {
        while (left > 0) {
          left -= 1;
          await call(index);
        }
      };
      await Promise.all(Array.from({ length: callers }, (_, index) => caller(index)));
    },
  };
}

function reportOf(title: string, store: string, result: TimingResult, peers: ReadonlyMap<string, string>): PartReport {
  const table: BenchTable = {
    title: `microseconds for one unit by the size of two full windows: ${title}`,
    notes: ["the ratios are taken within a round, then their median"],
    columns: [
      "",
      "given",
      `times ${LEAST}`,
      "refused",
      `times ${LEAST}`,
      ...Array.from(peers.values(), heading => `given, times ${heading}`),
    ],
    rows: [
      ...Array.from(peers.keys(), peer => [peer, result.ns(peer) / 1000]),
      ...LIMITS.map(limit => [
        `limit ${limit.toLocaleString("en")}`,
        result.ns(givenName(limit)) / 1000,
        result.ratio(givenName(limit), givenName(LEAST)),
        result.ns(refusedName(limit)) / 1000,
        result.ratio(refusedName(limit), refusedName(LEAST)),
        ...Array.from(peers.keys(), peer => result.ratio(givenName(limit), peer)),
      ]),
    ],
  };
  const figures: readonly Figure[] = [givenName, refusedName].map(name =>
    atMost(
      `${store}: ${name(MOST)} / ${name(LEAST)}, time for a unit`,
      result.ratio(name(MOST), name(LEAST)),
      TIMES_MAX,
    ),
  );
  return { tables: [table], figures };
}

/** A clock whose timers fire at once: the pauses of the store for other processes are not part of the cost of an exchange. */
class ImmediateTimersTime extends SystemTime {
  #skippedUs = 0;

  override monotonicUs(): number {
    return super.monotonicUs() + this.#skippedUs;
  }

  override setTimer(delayMs: number, fire: () => void): Timer {
    this.#skippedUs += Math.ceil(delayMs * 1000);
    const handle = setImmediate(fire);
    return { cancel: () => clearImmediate(handle) };
  }
}

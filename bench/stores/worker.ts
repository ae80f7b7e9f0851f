/**
 * One of the processes that share a store: `worker.ts redis <url>` or `worker.ts sqlite <file>`. Runs the rounds that
 * the parent sends.
 */
import { StoreError } from "../../src/errors.ts";
import { RateLimiter } from "../../src/gate/rate-limiter.ts";
import type { StoreName } from "../../src/stores/open-store.ts";
import type { BudgetStore } from "../../src/stores/store.ts";
import { systemTime } from "../../src/time/system-time.ts";
import {
  type Acquire,
  acquireEach,
  acquireNothing,
  acquireTogether,
  nextKey,
  WIDE_RATES,
  wideClaim,
} from "./acquire.ts";
import { LoopMonitor } from "./loop-monitor.ts";
import { openPeer, SINGLE, UNION } from "./peer.ts";
import { EACH, LIMITER, NOTHING, type RoundOrder, type RoundResult, TOGETHER } from "./round.ts";

const [, , kind = "", place = ""] = process.argv;
const store = await openStore();
/** The same two windows as those of the exchanges. */
const limiter = new RateLimiter(
  { defaults: { metadata: { rates: WIDE_RATES, guard_ms: 0 } } },
  { store: (kind === "redis" ? place : `sqlite:${place}`) as StoreName },
);
const peer = kind === "redis" ? await openPeer(place) : undefined;
/** Callers are kept between rounds, with the units that they have not settled. */
const known = new Map<string, Acquire>();
let turn: Promise<void> | undefined;

process.on("message", async (order: RoundOrder) => process.send?.(await run(order)));
process.once("disconnect", async () => {
  await limiter.close();
  await store.close();
  process.exit();
});
process.send?.("ready");

async function openStore(): Promise<BudgetStore> {
  if (kind === "redis") {
    const { RedisStore } = await import("../../src/stores/redis/redis-store.ts");
    return RedisStore.open(place);
  }
  const { SqliteStore } = await import("../../src/stores/sqlite/sqlite-store.ts");
  return SqliteStore.open(place, { time: systemTime });
}

function acquireOf({ entrant, callers, keys: count }: RoundOrder): Acquire {
  const keys = Array.from(
    { length: count },
    (_, index) => `${[SINGLE, UNION, EACH, TOGETHER].indexOf(entrant)} ${callers}/${count} ${index}`,
  );
  if (entrant === EACH) return acquireEach(store, keys.map(wideClaim), callers);
  if (entrant === TOGETHER) return acquireTogether(store, keys.map(wideClaim), callers);
  const next = nextKey(keys, callers);
  if (entrant === NOTHING) return acquireNothing();
  if (entrant === LIMITER) {
    const hosts = nextKey(
      keys.map((_, index) => `${callers}-${count}-${index}.example`),
      callers,
    );
    return async caller => {
      await limiter.acquire({ host: hosts(caller) });
    };
  }
  const consume = { [SINGLE]: peer?.single, [UNION]: peer?.union }[entrant];
  if (consume === undefined) throw new RangeError(`unknown case ${entrant}`);
  return async caller => {
    await consume(next(caller));
  };
}

/**
 * Sending takes at least one turn of the event loop. With Redis the reply brings one. Without it, the callers would
 * block the loop. All callers continue in the same turn, as after a read of a socket.
 */
async function afterTurn(): Promise<number> {
  turn ??= new Promise(resolve =>
    setImmediate(() => {
      turn = undefined;
      resolve();
    }),
  );
  await turn;
  return performance.now();
}

async function run(order: RoundOrder): Promise<RoundResult> {
  const { entrant, callers, keys, ms } = order;
  const name = `${entrant} ${callers} ${keys}`;
  const acquire = known.get(name) ?? acquireOf(order);
  known.set(name, acquire);
  const monitor = new LoopMonitor();
  const tookUs: number[] = [];
  let failed = 0;
  const startMs = performance.now();
  const endMs = startMs + ms;
  const caller = async (index: number) => {
    for (let beganMs = performance.now(); beganMs < endMs; ) {
      let isGiven = true;
      try {
        await acquire(index);
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        failed += 1;
        isGiven = false;
      }
      const endedMs = performance.now();
      if (isGiven) tookUs.push((endedMs - beganMs) * 1000);
      beganMs = endedMs;
      if (kind === "sqlite") beganMs = await afterTurn();
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, index) => caller(index)));
  const perSecond = (tookUs.length * 1000) / (performance.now() - startMs);
  const stalls = monitor.stop();
  return { perSecond, tookUs: Float64Array.from(tookUs), ...stalls, failed };
}

import { createClient } from "@redis/client";
import { RedisBatch, requestKeyOf } from "../../src/stores/redis/redis-batch.ts";
import { RedisLedger } from "../../src/stores/redis/redis-ledger.ts";
import { SCRIPT, SCRIPT_SHA } from "../../src/stores/redis/redis-script.ts";
import { scriptCallOf } from "../../src/stores/redis/script-call.ts";
import type { LeaseRequest, Settlement } from "../../src/stores/store.ts";
import { RedisServer } from "../../test/stores/redis-server.ts";

const LIMITS = [
  { limit: 20, windowUs: 1_000_000, spanUs: 1_025_000 },
  { limit: 60_000, windowUs: 3_600_000_000, spanUs: 3_600_025_000 },
];
const CALLS = 2000;

/**
 * Microseconds of server time for one exchange, a settlement and a request, of one of `members` processes that all wait
 * for the same key. Measured by the server (`INFO commandstats`), so that neither the network nor this process counts.
 */
export async function scriptCost(members: number): Promise<number> {
  const server = await RedisServer.start();
  const redis = createClient({ url: server.url, RESP: 3 });
  await redis.connect();
  try {
    await redis.scriptLoad(SCRIPT);
    const exchange = async (member: number, written: number) => {
      const batch = new RedisBatch();
      const settlement: Settlement = { keys: ["k"], written, returned: 0 };
      const request: LeaseRequest = { claims: [{ key: "k", windows: LIMITS, spacingUs: 0 }], least: 1, most: 5 };
      batch.settle(settlement);
      batch.request(requestKeyOf(request), request, () => undefined);
      const caller = {
        process: `00000000-0000-4000-8000-${String(member).padStart(12, "0")}`,
        leaseUs: 3e7,
        notAfterUs: 0,
        keyOf: (key: string) => key,
      };
      const { keys, args } = scriptCallOf(batch, new RedisLedger(), caller);
      await redis.evalSha(SCRIPT_SHA, { keys: [...keys], arguments: [...args] });
    };
    for (let member = 0; member < members; member += 1) await exchange(member, 0);
    await redis.configResetStat();
    for (let call = 0; call < CALLS; call += 1) await exchange(call % members, 1);
    const stats = await redis.info("commandstats");
    return Number(/cmdstat_evalsha:.*usec_per_call=([\d.]+)/.exec(stats)?.[1]);
  } finally {
    redis.destroy();
    await server.stop();
  }
}

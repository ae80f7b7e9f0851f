/** A Redis server with a replica and three sentinels. */
import { setTimeout } from "node:timers/promises";
import { RedisSentinelSet } from "../../test/stores/redis-sentinel-set.ts";
import type { RedisServer } from "../../test/stores/redis-server.ts";
import { type FaultKind, type FaultyStore, simpleFault } from "../fault.ts";
import { dataFaults, hang } from "./redis-faults.ts";

/** No server listens here, so that a replica of it replicates nothing. */
const DEAD_PORT = "1";

export async function startSentinels(): Promise<FaultyStore> {
  const set = await RedisSentinelSet.start();
  const primaries = () => [set.primary];
  const hangs = hang(primaries);
  // The sentinels may have promoted the replica meanwhile. The next fault finds a replica with all data.
  const repair = () => set.isComplete();
  return {
    url: set.url,
    ports: [...set.servers, ...set.sentinels].map(({ port }) => port),
    faults: [
      ...dataFaults(primaries),
      { name: hangs.name, draw: (random, fleet) => ({ ...hangs.draw(random, fleet), repair }) },
      failover("failover", set, async () => undefined),
      failover("lagging-replica", set, async replica => {
        replica.cli("replicaof", "127.0.0.1", DEAD_PORT);
      }),
      switchover(set),
    ],
    missing: [],
    close: () => set[Symbol.asyncDispose](),
  };
}

/** The primary is killed, and the sentinels promote the replica. `prepare` comes a while earlier. */
function failover(name: string, set: RedisSentinelSet, prepare: (replica: RedisServer) => Promise<void>): FaultKind {
  return {
    name,
    draw: random => {
      const lagMs = name === "failover" ? 0 : random.whole(200, 3000);
      let old: RedisServer | undefined;
      return {
        name,
        detail: lagMs === 0 ? "" : `${lagMs} ms behind`,
        durationMs: 0,
        separated: 0,
        returnsStore: true,
        begin: async () => {
          await set.isComplete();
          const { primary, servers } = set;
          old = primary;
          await prepare(servers[0] === primary ? servers[1] : servers[0]);
          await setTimeout(lagMs);
          await primary.stop();
        },
        end: async () => {
          if (old !== undefined) await set.failedOver(old);
        },
        repair: async () => {
          if (old !== undefined) await set.rejoin(old);
        },
      };
    },
  };
}

/** The sentinels promote the replica while the old primary still answers. */
function switchover(set: RedisSentinelSet): FaultKind {
  let old: RedisServer | undefined;
  return simpleFault(
    "switchover",
    [0, 0],
    async () => {
      await set.isComplete();
      old = set.primary;
    },
    async () => {
      // On a busy machine the sentinels may give up a failover: it is asked for again. One in progress is not disturbed.
      while (set.primary === old) {
        set.sentinels[0]?.cli("sentinel", "failover", "limits");
        for (let wait = 0; wait < 40 && set.primary === old; wait += 1) await setTimeout(50);
      }
    },
  );
}

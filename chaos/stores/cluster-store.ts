/** A Redis cluster of three servers with a replica each. */
import { setTimeout } from "node:timers/promises";
import type { RedisClusterServers } from "../../test/stores/redis-cluster-servers.ts";
import { startCluster as startServers } from "../../test/stores/redis-cluster-servers.ts";
import type { RedisServer } from "../../test/stores/redis-server.ts";
import { type FaultKind, type FaultyStore, simpleFault } from "../fault.ts";
import { dataFaults, hang } from "./redis-faults.ts";

export async function startCluster(): Promise<FaultyStore> {
  const cluster = await startServers({ hasReplicas: true });
  const servers = [...cluster.primaries, ...cluster.replicas];
  const primaries = () => servers.filter(isPrimary);
  return {
    url: cluster.url,
    ports: servers.map(({ port }) => port),
    faults: [...dataFaults(primaries), hang(primaries), switchover(cluster), failover(cluster)],
    missing: [],
    close: async () => cluster[Symbol.asyncDispose](),
  };
}

function isPrimary(server: RedisServer): boolean {
  return server.cli("role").startsWith("master");
}

/** Each of the three pairs changes roles, while both servers of it answer. */
function switchover({ primaries, replicas }: RedisClusterServers): FaultKind {
  return simpleFault(
    "switchover",
    [0, 0],
    async () => {
      for (const server of [...primaries, ...replicas].filter(server => !isPrimary(server)))
        server.cli("cluster", "failover");
    },
    async () => undefined,
  );
}

/** One primary is killed, its replica takes over, and the killed server returns as replica. */
function failover({ primaries, replicas }: RedisClusterServers): FaultKind {
  return {
    name: "failover",
    draw: random => {
      const pair = random.whole(0, primaries.length - 1);
      const both = [primaries[pair], replicas[pair]].filter(server => server !== undefined);
      let killed: RedisServer | undefined;
      return {
        name: "failover",
        detail: `slots ${pair + 1} of 3`,
        durationMs: 0,
        separated: 0,
        returnsStore: true,
        begin: async () => {
          killed = both.find(isPrimary);
          await killed?.stop();
        },
        end: async () => {
          const [other] = both.filter(server => server !== killed);
          while (other !== undefined && !isPrimary(other)) await setTimeout(50);
          while (other?.cli("cluster", "info").includes("cluster_state:ok") === false) await setTimeout(50);
        },
        repair: async () => {
          await killed?.start();
          while (killed?.cli("info", "replication").includes("master_link_status:up") === false) await setTimeout(50);
        },
      };
    },
  };
}

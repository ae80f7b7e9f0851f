/** Three Redis servers that form a cluster, for one test. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemTime } from "../../src/time/system-time.ts";
import { RedisServer } from "./redis-server.ts";

const SLOTS = [
  [0, 5460],
  [5461, 10_922],
  [10_923, 16_383],
] as const;

export interface RedisClusterServers extends AsyncDisposable {
  readonly primaries: readonly RedisServer[];
  /** One for each primary, in the same order; empty unless they were asked for. */
  readonly replicas: readonly RedisServer[];
  /** The address of the cluster, with all its primaries. */
  readonly url: string;
}

export async function startCluster({ hasReplicas = false } = {}): Promise<RedisClusterServers> {
  const folder = await mkdtemp(join(tmpdir(), "docstokg-cluster-"));
  const startNode = (name: string) =>
    RedisServer.start(
      ...["--cluster-enabled", "yes", "--dir", folder, "--cluster-config-file", `nodes-${name}.conf`],
      ...["--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0"],
    );
  const primaries = await Promise.all(SLOTS.map((_, index) => startNode(`primary-${index}`)));
  const replicas = hasReplicas ? await Promise.all(SLOTS.map((_, index) => startNode(`replica-${index}`))) : [];
  const servers = [...primaries, ...replicas];
  const [first] = primaries;
  for (const [index, server] of servers.entries()) {
    const slots = SLOTS[index];
    if (slots !== undefined) server.cli("cluster", "addslotsrange", ...slots.map(String));
    server.cli("cluster", "set-config-epoch", String(index + 1));
    if (server !== first) server.cli("cluster", "meet", "127.0.0.1", String(first?.port));
  }
  const isJoined = () =>
    servers.every(server => {
      const info = server.cli("cluster", "info");
      return info.includes("cluster_state:ok") && info.includes(`cluster_known_nodes:${servers.length}`);
    });
  while (!isJoined()) await systemTime.sleep(50);
  for (const [index, replica] of replicas.entries())
    replica.cli("cluster", "replicate", primaries[index]?.cli("cluster", "myid") ?? "");
  while (replicas.some(replica => !replica.cli("info", "replication").includes("master_link_status:up")))
    await systemTime.sleep(50);
  return {
    primaries,
    replicas,
    url: `redis://${primaries.map(({ port }) => `127.0.0.1:${port}`).join(",")}?cluster=true`,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(servers.map(server => server.stop()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

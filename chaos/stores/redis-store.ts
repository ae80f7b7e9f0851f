/** One Redis server, which writes to disk. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RedisServer } from "../../test/stores/redis-server.ts";
import { type FaultyStore, simpleFault } from "../fault.ts";
import { dataFaults, hang } from "./redis-faults.ts";

export async function startRedis(): Promise<FaultyStore> {
  const folder = await mkdtemp(join(tmpdir(), "docstokg-chaos-"));
  const server = await RedisServer.start("--dir", folder, "--appendonly", "yes");
  const servers = () => [server];
  const stop = () => server.stop();
  const start = () => server.start();
  return {
    url: server.url,
    ports: [server.port],
    faults: [
      ...dataFaults(servers),
      hang(servers),
      simpleFault("restart", [0, 4000], stop, start),
      simpleFault(
        "restart-empty",
        [0, 4000],
        async () => {
          await stop();
          await rm(join(folder, "appendonlydir"), { recursive: true, force: true });
        },
        start,
      ),
    ],
    missing: [],
    close: async () => {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

import { spawnSync } from "node:child_process";
import { RedisServer } from "../../test/stores/redis-server.ts";
import type { PartReport } from "../kit/bench.ts";

export interface OpenedServer extends AsyncDisposable {
  readonly url: string;
}

/** A Redis server without files; undefined if Redis is not installed. */
export async function openServer(): Promise<OpenedServer | undefined> {
  if (spawnSync("redis-server", ["--version"]).status !== 0) return undefined;
  const server = await RedisServer.start();
  return { url: server.url, [Symbol.asyncDispose]: () => server.stop() };
}

export function noServer(): PartReport {
  return {
    tables: [{ title: "skipped: redis-server is not on PATH", columns: [""], rows: [] }],
    figures: [],
  };
}

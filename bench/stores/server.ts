import { RedisServer, whyNoRedis } from "../../test/stores/redis-server.ts";
import type { PartReport } from "../kit/bench.ts";

export interface OpenedServer extends AsyncDisposable {
  readonly url: string;
}

/** A Redis server without files; undefined if Redis is missing and cannot be installed. */
export async function openServer(): Promise<OpenedServer | undefined> {
  if (whyNoRedis() !== false) return undefined;
  const server = await RedisServer.start();
  return { url: server.url, [Symbol.asyncDispose]: () => server.stop() };
}

export function noServer(): PartReport {
  return {
    tables: [{ title: `skipped: ${whyNoRedis()}`, columns: [""], rows: [] }],
    figures: [],
  };
}

import { createClient } from "@redis/client";
import { RateLimiterMemory, RateLimiterQueue, RateLimiterRedis } from "rate-limiter-flexible";
import type { Client, ClientSetup } from "../client.ts";
import type { RaceRole, RaceWindow } from "../limits.ts";
import { peerClient, runAtOnce, type TaskRunner } from "../peer.ts";

/** One queue for each window; the hosts are its keys. */
export async function open(setup: ClientSetup): Promise<Client> {
  const { limits, store } = setup;
  const storeClient = store?.startsWith("redis:") ? createClient({ url: store }) : undefined;
  await storeClient?.connect();
  const queueOf = (keyPrefix: string, { limit, windowMs }: RaceWindow) => {
    const options = { keyPrefix: `${keyPrefix} ${windowMs}`, points: limit, duration: windowMs / 1000 };
    const limiter = storeClient
      ? new RateLimiterRedis({ ...options, storeClient, useRedisPackage: true })
      : new RateLimiterMemory(options);
    return new RateLimiterQueue(limiter, { maxQueueSize: Number.MAX_SAFE_INTEGER });
  };
  const queues = (scope: RaceRole | "total") =>
    (limits[scope] ?? []).toSorted((a, b) => b.windowMs - a.windowMs).map(window => queueOf(scope, window));
  const scopes = { metadata: queues("metadata"), artifact: queues("artifact"), total: queues("total") };
  const runnerOf = (host: string, role: RaceRole): TaskRunner =>
    [...scopes[role], ...scopes.total].reduceRight((inner: TaskRunner, queue) => {
      return async task => {
        await queue.removeTokens(1, host);
        return inner(task);
      };
    }, runAtOnce);
  return peerClient(setup, runnerOf, () => storeClient?.destroy());
}

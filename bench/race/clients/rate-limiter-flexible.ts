import { createClient } from "@redis/client";
import { RateLimiterMemory, RateLimiterQueue, RateLimiterRedis } from "rate-limiter-flexible";
import type { Client, Setting } from "../client.ts";
import type { Role, Window } from "../limits.ts";
import { peerClient, straight, type Turns } from "../peer.ts";

/** One queue for each window; the hosts are its keys. */
export async function open(setting: Setting): Promise<Client> {
  const { limits, store } = setting;
  const storeClient = store?.startsWith("redis:") ? createClient({ url: store }) : undefined;
  await storeClient?.connect();
  const queueOf = (keyPrefix: string, { limit, windowMs }: Window) => {
    const options = { keyPrefix: `${keyPrefix} ${windowMs}`, points: limit, duration: windowMs / 1000 };
    const limiter = storeClient
      ? new RateLimiterRedis({ ...options, storeClient, useRedisPackage: true })
      : new RateLimiterMemory(options);
    return new RateLimiterQueue(limiter, { maxQueueSize: Number.MAX_SAFE_INTEGER });
  };
  const queues = (scope: Role | "total") =>
    (limits[scope] ?? []).toSorted((a, b) => b.windowMs - a.windowMs).map(window => queueOf(scope, window));
  const scopes = { metadata: queues("metadata"), artifact: queues("artifact"), total: queues("total") };
  const turnsOf = (host: string, role: Role): Turns =>
    [...scopes[role], ...scopes.total].reduceRight((inner: Turns, queue) => {
      return async task => {
        await queue.removeTokens(1, host);
        return inner(task);
      };
    }, straight);
  return peerClient(setting, turnsOf, () => storeClient?.destroy());
}

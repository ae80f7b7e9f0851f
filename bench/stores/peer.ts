/** rate-limiter-flexible on Redis, with the driver that our store uses. */
import { createClient } from "@redis/client";
import { RateLimiterRedis, RateLimiterUnion } from "rate-limiter-flexible";

export const SINGLE = "rate-limiter-flexible, one window";
export const UNION = "rate-limiter-flexible, union of two windows";

/** The heading of its column. */
export const PEER_COLUMNS: ReadonlyMap<string, string> = new Map([
  [SINGLE, "one window"],
  [UNION, "union"],
]);

export interface Peer {
  readonly single: (key: string) => Promise<unknown>;
  readonly union: (key: string) => Promise<unknown>;
  close(): void;
}

const ENDLESS = 1e9;

export async function openPeer(url: string): Promise<Peer> {
  const storeClient = createClient({ url });
  await storeClient.connect();
  const limiter = (keyPrefix: string, duration: number) =>
    new RateLimiterRedis({ storeClient, useRedisPackage: true, keyPrefix, points: ENDLESS, duration });
  const single = limiter("single", 60);
  const union = new RateLimiterUnion(limiter("second", 1), limiter("minute", 60));
  return {
    single: key => single.consume(key),
    union: key => union.consume(key),
    close: () => storeClient.destroy(),
  };
}

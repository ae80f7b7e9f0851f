import { quote } from "../../core/text/quote.ts";
import type { StoreError } from "../../errors.ts";
import type { Time } from "../../time/time.ts";
import type { HubOptions } from "../hub-options.ts";
import type { CacheStore } from "./cache-store.ts";
import { MemoryCache } from "./memory-cache.ts";

/** A cache and the function that closes it. */
export interface OpenedCache {
  readonly store: CacheStore;
  readonly close: () => Promise<void>;
}

/**
 * Throws a RangeError for an invalid name. A file that cannot be opened makes a cache that stores nothing; `onTrouble`
 * is called with the reason.
 */
export async function openCache(
  kind: HubOptions["cache"],
  time: Time,
  onTrouble: (error: StoreError) => void,
): Promise<OpenedCache | undefined> {
  if (kind === false) return undefined;
  if (kind === undefined || kind === "memory") {
    const store = new MemoryCache();
    return { store, close: async () => store.close() };
  }
  const [, file] = /^sqlite:(.+)$/s.exec(kind) ?? [];
  if (file === undefined) {
    throw new RangeError(`cache must be "memory", "sqlite:<file>" or false, not ${quote(String(kind))}`);
  }
  const { SqliteCache } = await import("./sqlite-cache.ts");
  const store = await SqliteCache.open(file, { time, onTrouble });
  return {
    store,
    close: async () => {
      await store.settled();
      store.close();
    },
  };
}

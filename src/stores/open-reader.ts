import { resolve } from "node:path";
import type { Time } from "../time/time.ts";
import { LazyStore } from "./lazy-store.ts";
import {
  checkPostgresUrl,
  checkRedisUrl,
  STORE_OPTION,
  type StoreDeps,
  type StoreName,
  storeFor,
} from "./open-store.ts";
import { isPostgresUrl } from "./postgres/postgres-store-url.ts";
import { isRedisUrl } from "./redis/redis-url.ts";
import { SqliteReader } from "./sqlite/sqlite-reader.ts";
import type { RecordReader } from "./store.ts";

/** The records of a store, for a command that looks at running processes. */
export interface OpenedReader extends RecordReader {
  close(): Promise<void> | void;
}

/** The name of a store after `sharedStoreName` has replaced `multiprocess` by its file. `memory` is shared by no processes. */
type ResolvedStoreName = Exclude<StoreName, "multiprocess">;

/**
 * Reads the records of a store without a right to write: a SQLite file is opened read-only, and the reader is not counted
 * among the processes. Undefined when nothing is shared.
 */
export function readerFor(name: ResolvedStoreName, time: Time): OpenedReader | undefined {
  const [, file] = /^sqlite:(.+)$/s.exec(name) ?? [];
  if (file !== undefined) return new SqliteReader(resolve(file), time);
  return isServer(name) ? observerFor(name, time) : undefined;
}

/** A store for a command that gives orders. Undefined when nothing is shared. */
export function operatorStoreFor(name: ResolvedStoreName, deps: StoreDeps): LazyStore | undefined {
  return isServer(name) ? observerFor(name, deps.time) : storeFor(name, deps);
}

function isServer(name: string): boolean {
  return isRedisUrl(name) || isPostgresUrl(name);
}

function observerFor(url: string, time: Time): LazyStore {
  if (isPostgresUrl(url)) {
    checkPostgresUrl(url, STORE_OPTION);
    return new LazyStore(async () => {
      const { PostgresStore } = await import("./postgres/postgres-store.ts");
      return PostgresStore.open(url, { time, isObserver: true });
    });
  }
  checkRedisUrl(url, STORE_OPTION);
  return new LazyStore(async () => {
    const { RedisStore } = await import("./redis/redis-store.ts");
    return RedisStore.open(url, { time, isObserver: true });
  });
}

import { PostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { isPostgresUrl } from "../../src/stores/postgres/postgres-store-url.ts";
import { RedisStore } from "../../src/stores/redis/redis-store.ts";
import { SqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { Store } from "../../src/stores/store.ts";
import type { Time } from "../../src/time/time.ts";

/** So long that neither a slow machine nor a clock that a test steps looks like an outage. */
const TIMEOUT_MS = 86_400_000;

export interface PatientStoreOptions {
  readonly time: Time;
  readonly leaseMs?: number;
  /** Replaces the clock of a redis server. */
  readonly serverUs?: () => number;
  readonly onTrouble?: (error: Error) => void;
}

/** `sqlite:<file>`, `redis://…` or `postgres://…` */
export function openPatientStore(address: string, options: PatientStoreOptions): Promise<Store> {
  const file = /^sqlite:(.+)$/.exec(address)?.[1];
  const { serverUs, onTrouble, ...common } = { ...options, timeoutMs: TIMEOUT_MS };
  if (file !== undefined) return SqliteStore.open(file, { ...common, ...(onTrouble && { onTrouble }) });
  if (isPostgresUrl(address)) return PostgresStore.open(address, { ...common, ...(serverUs && { serverUs }) });
  return RedisStore.open(address, { ...common, ...(serverUs && { serverUs }) });
}

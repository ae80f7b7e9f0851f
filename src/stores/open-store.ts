import { resolve } from "node:path";
import { quote } from "../core/text/quote.ts";
import { ConfigError, type ConfigProblem, messageOf, type StoreError } from "../errors.ts";
import type { Environment } from "../policy/environment.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import type { SourceIndex } from "../policy/source-index.ts";
import type { Time } from "../time/time.ts";
import { LazyStore } from "./lazy-store.ts";
import { isPostgresUrl, parsePostgresStoreUrl } from "./postgres/postgres-store-url.ts";
import { isRedisUrl, parseRedisUrl } from "./redis/redis-url.ts";
import { userStoreFile } from "./user-store-file.ts";

/**
 * The store through which processes share limits and breakers. `memory`: not shared. `multiprocess`: with all processes
 * of this user on this machine. `sqlite:<file>`: with all processes that open the file. `redis://…`: with all that use
 * the server or cluster; `redis+sentinel://a,b,c/name`: with all that use the server that these sentinels monitor under
 * this name. `rediss` instead of `redis`: with TLS. `postgres://…`: with all that use the database.
 */
export type StoreName =
  | "memory"
  | "multiprocess"
  | `sqlite:${string}`
  | `redis://${string}`
  | `rediss://${string}`
  | `redis+sentinel://${string}`
  | `rediss+sentinel://${string}`
  | `postgres://${string}`
  | `postgresql://${string}`;

export interface StoreDeps {
  readonly policy: LoadedPolicy;
  readonly env: Environment;
  readonly time: Time;
  readonly random: () => number;
}

/**
 * The store called `name`, by default the `backend` of the policy; undefined when nothing is shared. It is opened at
 * the first use, and again after a failure, so that an unreachable store does not stop the program (law S4).
 * Throws a ConfigError for an invalid name, or if the folder of `multiprocess` may belong to another user.
 */
export function storeFor(name: StoreName | undefined, { policy, ...deps }: StoreDeps): LazyStore | undefined {
  return name === undefined ? storeAt(backendName(policy), POLICY_BACKEND, deps) : storeAt(name, STORE_OPTION, deps);
}

/** As `storeFor`, for a given name. `source` says where it was set, for messages. */
export function storeAt(
  name: StoreName,
  source: NameSource,
  { env, time, random }: Omit<StoreDeps, "policy">,
): LazyStore | undefined {
  if (name === "memory") return undefined;
  // The file may be in the temporary folder, which all users share.
  if (name === "multiprocess") return lazySqliteStore(userStoreFile(env), time, random, { isPrivate: true });
  const [, file] = /^sqlite:(.+)$/s.exec(name) ?? [];
  if (file !== undefined) return lazySqliteStore(file, time, random);
  if (isRedisUrl(name)) {
    checkRedisUrl(name, source);
    return new LazyStore(async processId => {
      const { RedisStore } = await import("./redis/redis-store.ts");
      return RedisStore.open(name, { time, processId });
    });
  }
  if (isPostgresUrl(name)) {
    checkPostgresUrl(name, source);
    return new LazyStore(async processId => {
      const { PostgresStore } = await import("./postgres/postgres-store.ts");
      return PostgresStore.open(name, { time, processId });
    });
  }
  const message =
    `unknown store ${quote(name)}; ` +
    'expected "memory", "multiprocess", "sqlite:<file>", "redis://…", "redis+sentinel://…" or "postgres://…"';
  throw new ConfigError([{ ...STORE_OPTION, message }]);
}

/** Where the name of a store was set, for messages. */
type NameSource = Pick<ConfigProblem, "where" | "path">;
export const STORE_OPTION: NameSource = { where: "store", path: "" };
const POLICY_BACKEND: NameSource = { where: "policy", path: "backend.dsn" };
const POLICY_COOLDOWN_STORE: NameSource = { where: "policy", path: "advanced.cooldown_store.dsn" };

/**
 * A store in a file, opened at the first use. If the file is damaged, it is replaced, and a process warning reports
 * this: the counts of its windows are lost.
 */
export function lazySqliteStore(
  file: string,
  time: Time,
  random: () => number = Math.random,
  { isPrivate = false }: { readonly isPrivate?: boolean } = {},
): LazyStore {
  return new LazyStore(async processId => {
    const { SqliteStore } = await import("./sqlite/sqlite-store.ts");
    const onTrouble = ({ message }: StoreError) => process.emitWarning(message, "DocstokgWarning");
    return SqliteStore.open(file, { time, random, onTrouble, isPrivate, processId });
  });
}

/** The `cooldown_store` of the policy: shares breakers in another store than the limits. */
export function breakerStoreFor(deps: StoreDeps): LazyStore | undefined {
  const storeName = breakerStoreName(deps.policy);
  return storeName && storeAt(storeName, POLICY_COOLDOWN_STORE, deps);
}

/**
 * The store in which running processes publish their state: `name`, or else the one that their hubs choose by the
 * policy. `multiprocess` is replaced by its file; `memory` means that each process is alone.
 */
export function sharedStoreName(
  name: StoreName | undefined,
  { policy, env }: Pick<StoreDeps, "policy" | "env">,
): Exclude<StoreName, "multiprocess"> {
  const storeName = name ?? breakerStoreName(policy) ?? backendName(policy);
  return storeName === "multiprocess" ? `sqlite:${userStoreFile(env)}` : storeName;
}

/** The stores of a hub: of the limits, and of the breakers when it is another one. */
export interface StoreNames {
  readonly limits: string;
  readonly breakers: string | undefined;
}

/** The stores that a hub with the option `store` uses. Equal stores have equal names, also for two paths of one file. */
export function storeNamesOf(
  name: StoreName | undefined,
  { policy, env }: Pick<StoreDeps, "policy" | "env">,
): StoreNames {
  const canonicalName = (storeName: StoreName) => {
    const [, file] =
      /^sqlite:(.+)$/s.exec(storeName === "multiprocess" ? `sqlite:${userStoreFile(env)}` : storeName) ?? [];
    return file === undefined ? storeName : `sqlite:${resolve(file)}`;
  };
  const breakers = breakerStoreName(policy);
  return { limits: canonicalName(name ?? backendName(policy)), breakers: breakers && canonicalName(breakers) };
}

/** Throws a ConfigError now, not at the first request, for a URL that cannot be parsed. */
export function checkRedisUrl(url: string, source: NameSource): void {
  try {
    parseRedisUrl(url);
  } catch (error) {
    throw new ConfigError([{ ...source, message: messageOf(error) }]);
  }
}

/** As `checkRedisUrl`. */
export function checkPostgresUrl(url: string, source: NameSource): void {
  try {
    parsePostgresStoreUrl(url);
  } catch (error) {
    throw new ConfigError([{ ...source, message: messageOf(error) }]);
  }
}

/** Throws a ConfigError if a hub cannot use the stores that the policy names. Opens none. */
export function checkPolicyStores(deps: StoreDeps): void {
  storeFor(undefined, deps);
  breakerStoreFor(deps);
}

function breakerStoreName({ breakers: { options, index } }: LoadedPolicy): StoreName | undefined {
  const { backend = "none", dsn = "" } = options.advanced?.cooldown_store ?? {};
  return backend === "none" ? undefined : storeNameFor(backend, dsn, index, ["advanced", "cooldown_store"], "backend");
}

function backendName({ ratelimits: { options, index } }: LoadedPolicy): StoreName {
  const { kind = "memory", dsn = "" } = options.backend ?? {};
  if (kind === "memory" || kind === "multiprocess") return kind;
  return storeNameFor(kind, dsn, index, ["backend"], "kind");
}

const DSN_EXAMPLES = {
  sqlite: "the path of the file",
  redis: "redis://host:6379/0",
  postgres: "postgres://user@host:5432/database",
} as const;

function storeNameFor(
  kind: "sqlite" | "redis" | "postgres",
  dsn: string,
  index: SourceIndex,
  path: readonly string[],
  kindKey: string,
): StoreName {
  const kindOfDsn = isRedisUrl(dsn) ? "redis" : isPostgresUrl(dsn) ? "postgres" : "sqlite";
  if (dsn !== "" && kindOfDsn === kind)
    return (kind === "sqlite" && !dsn.startsWith("sqlite:") ? `sqlite:${dsn}` : dsn) as StoreName;
  const where = index.whereOf([...path, dsn === "" ? kindKey : "dsn"]) ?? "policy";
  const message =
    dsn === ""
      ? `backend ${kind} needs a dsn: ${DSN_EXAMPLES[kind]}`
      : `${quote(dsn)} is not a dsn of backend ${kind}; expected ${DSN_EXAMPLES[kind]}`;
  throw new ConfigError([{ where, path: [...path, "dsn"].join("."), message }]);
}

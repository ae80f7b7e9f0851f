import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError, StoreError } from "../errors.ts";
import type { BreakersOptions } from "../policy/breaker-schema.ts";
import type { Environment } from "../policy/environment.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import type { Time } from "../time/time.ts";
import type { LeaseReply, LeaseRequest, RecordUpdate, Settlement, Store, StoreRecord } from "./store.ts";

/** Where limits are shared: `memory` for not at all. */
export type StoreName = "memory" | "multiprocess" | `sqlite:${string}` | `redis://${string}` | `rediss://${string}`;

export interface StoreDeps {
  readonly policy: LoadedPolicy;
  readonly env: Environment;
  readonly time: Time;
  readonly random: () => number;
}

/**
 * The store that `name` says, or else the policy's `backend`; undefined when nothing is shared. It is opened when it is
 * first needed, and again after a failure: one that cannot be had is away, and takes nobody down (law S4).
 * Throws a ConfigError for what is no store.
 */
export function storeFor(name: StoreName | undefined, { policy, env, time, random }: StoreDeps): Store | undefined {
  const where = name ?? backendName(policy);
  if (where === "memory") return undefined;
  if (where === "multiprocess") return storeFor(`sqlite:${userStoreFile(env)}`, { policy, env, time, random });
  const [, file] = /^sqlite:(.+)$/s.exec(where) ?? [];
  if (file !== undefined) return lazySqliteStore(file, time, random);
  if (/^rediss?:\/\//.test(where)) {
    const { url, ...options } = redisOptions(where, name === undefined ? "backend.dsn" : "store");
    return new LazyStore(async () => {
      const { RedisStore } = await import("./redis/redis-store.ts");
      return RedisStore.open(url, { time, ...options });
    });
  }
  const message = `expected "memory", "multiprocess", "sqlite:<file>" or "redis://…"`;
  throw new ConfigError([{ where: "createHub", path: name === undefined ? "backend" : "store", message }]);
}

/** A file, opened when it is first needed. */
export function lazySqliteStore(file: string, time: Time, random: () => number = Math.random): Store {
  return new LazyStore(async () => {
    const { SqliteStore } = await import("./sqlite/sqlite-store.ts");
    return SqliteStore.open(file, { time, random });
  });
}

/** Where breakers are shared, if not with the limits: what the policy's `cooldown_store` says. */
export function breakerStoreFor(deps: StoreDeps): Store | undefined {
  const storeName = breakerStoreName(deps.policy);
  return storeName && storeFor(storeName, deps);
}

/**
 * Where running processes can be met: as `name` says, or else as the policy makes their hubs choose it. A file by its
 * own name; "memory" where each process is on its own.
 */
export function sharedStoreName(
  name: StoreName | undefined,
  { policy, env }: Pick<StoreDeps, "policy" | "env">,
): Exclude<StoreName, "multiprocess"> {
  const storeName = name ?? breakerStoreName(policy) ?? backendName(policy);
  return storeName === "multiprocess" ? `sqlite:${userStoreFile(env)}` : storeName;
}

/** Which of them a registry keeps is the hub's business. */
export function withoutStore({ advanced, ...options }: BreakersOptions): BreakersOptions {
  const { cooldown_store: _, ...rest } = advanced ?? {};
  return { ...options, advanced: rest };
}

/** What an address may say after its question mark: `?cluster=true&prefix=mine`. */
function redisOptions(where: string, path: string): { url: string; cluster: boolean; prefix?: string } {
  const problem = (message: string) => new ConfigError([{ where: "createHub", path, message }]);
  const url = URL.parse(where);
  if (url === null) throw problem("expected an address such as redis://user:password@host:6379/0");
  const { cluster = "false", prefix, ...unknown } = Object.fromEntries(url.searchParams);
  const [other] = Object.keys(unknown);
  if (other !== undefined)
    throw problem(`${JSON.stringify(other)} is no parameter of redis; there are cluster and prefix`);
  if (cluster !== "true" && cluster !== "false") throw problem("cluster is true or false");
  url.search = "";
  return { url: url.href, cluster: cluster === "true", ...(prefix && { prefix }) };
}

function breakerStoreName({ breakers }: LoadedPolicy): StoreName | undefined {
  const { backend = "none", dsn = "" } = breakers.options.advanced?.cooldown_store ?? {};
  return backend === "none" ? undefined : storeNameFor(backend, dsn, "advanced.cooldown_store.dsn");
}

function backendName({ ratelimits }: LoadedPolicy): StoreName {
  const { kind = "memory", dsn = "" } = ratelimits.options.backend ?? {};
  if (kind === "memory" || kind === "multiprocess") return kind;
  return storeNameFor(kind, dsn, "backend.dsn");
}

function storeNameFor(kind: "sqlite" | "redis", dsn: string, path: string): StoreName {
  if (dsn !== "") return (kind === "sqlite" && !dsn.startsWith("sqlite:") ? `sqlite:${dsn}` : dsn) as StoreName;
  const message = `${kind} needs a dsn: ${kind === "sqlite" ? "the file" : "redis://…"}`;
  throw new ConfigError([{ where: "policy", path, message }]);
}

/** One file for all processes of one user on this machine. */
function userStoreFile(env: Environment): string {
  const folder = env["XDG_RUNTIME_DIR"] || join(tmpdir(), `docstokg-${process.getuid?.() ?? "user"}`);
  return join(folder, "docstokg", "limits.db");
}

class LazyStore implements Store {
  /** Its own, because it is wanted before the store is there. */
  readonly processId: string = randomUUID();
  readonly #open: () => Promise<Store>;
  #opening: Promise<Store> | undefined;
  #store: Store | undefined;

  constructor(open: () => Promise<Store>) {
    this.#open = open;
  }

  get processes(): number {
    return this.#store?.processes ?? 1;
  }

  async exchange(
    settlements: readonly Settlement[],
    requests: readonly LeaseRequest[],
  ): Promise<readonly LeaseReply[]> {
    return (await this.#opened()).exchange(settlements, requests);
  }

  async read<Value>(name: string): Promise<StoreRecord<Value>> {
    return (await this.#opened()).read(name);
  }

  async change<Value, Result>(
    name: string,
    step: (current: StoreRecord<Value>) => RecordUpdate<Value, Result>,
  ): Promise<Result> {
    return (await this.#opened()).change(name, step);
  }

  async list<Value>(prefix: string): Promise<readonly (StoreRecord<Value> & { readonly name: string })[]> {
    return (await this.#opened()).list(prefix);
  }

  async close(): Promise<void> {
    // One that never came up has nothing to close.
    await this.#opening?.then(
      store => store.close(),
      () => undefined,
    );
  }

  async #opened(): Promise<Store> {
    this.#opening ??= this.#open();
    try {
      this.#store = await this.#opening;
      return this.#store;
    } catch (cause) {
      this.#opening = undefined;
      throw cause instanceof StoreError ? cause : new StoreError("the store cannot be opened", { cause });
    }
  }
}

import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError, StoreError } from "../errors.ts";
import type { Environment } from "../policy/environment.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import type { Answer, Ask, BudgetStore, Settlement } from "../stores/store.ts";
import type { Time } from "../time/time.ts";

/** Where limits are shared: `memory` for not at all. */
export type StoreName = "memory" | "multiprocess" | `sqlite:${string}` | `redis://${string}` | `rediss://${string}`;

export interface StoreRoom {
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
export function storeFor(
  name: StoreName | undefined,
  { policy, env, time, random }: StoreRoom,
): BudgetStore | undefined {
  const where = name ?? backendName(policy);
  if (where === "memory") return undefined;
  if (where === "multiprocess") return storeFor(`sqlite:${commonFile(env)}`, { policy, env, time, random });
  const [, file] = /^sqlite:(.+)$/s.exec(where) ?? [];
  if (file !== undefined) {
    return new LazyStore(async () => {
      const { SqliteStore } = await import("../stores/sqlite-store.ts");
      return SqliteStore.open(file, { time, random });
    });
  }
  if (/^rediss?:\/\//.test(where)) {
    return new LazyStore(async () => {
      const { RedisStore } = await import("../stores/redis-store.ts");
      return RedisStore.open(where, { time });
    });
  }
  const message = `expected "memory", "multiprocess", "sqlite:<file>" or "redis://…"`;
  throw new ConfigError([{ where: "createHub", path: name === undefined ? "backend" : "store", message }]);
}

function backendName({ ratelimits }: LoadedPolicy): StoreName {
  const { kind = "memory", dsn = "" } = ratelimits.options.backend ?? {};
  if (kind === "memory" || kind === "multiprocess") return kind;
  if (dsn !== "") return (kind === "sqlite" && !dsn.startsWith("sqlite:") ? `sqlite:${dsn}` : dsn) as StoreName;
  const message = kind === "sqlite" ? "backend sqlite needs a dsn: the file" : "backend redis needs a dsn: redis://…";
  throw new ConfigError([{ where: "policy", path: "backend.dsn", message }]);
}

/** One file for all processes of one user on this machine. */
function commonFile(env: Environment): string {
  const folder = env["XDG_RUNTIME_DIR"] || join(tmpdir(), `docstokg-${process.getuid?.() ?? "user"}`);
  return join(folder, "docstokg", "limits.db");
}

class LazyStore implements BudgetStore {
  readonly #open: () => Promise<BudgetStore>;
  #opening: Promise<BudgetStore> | undefined;
  #store: BudgetStore | undefined;

  constructor(open: () => Promise<BudgetStore>) {
    this.#open = open;
  }

  get processes(): number {
    return this.#store?.processes ?? 1;
  }

  async exchange(settlements: readonly Settlement[], asks: readonly Ask[]): Promise<readonly Answer[]> {
    return (await this.#opened()).exchange(settlements, asks);
  }

  async close(): Promise<void> {
    // One that never came up has nothing to close.
    await this.#opening?.then(
      store => store.close(),
      () => undefined,
    );
  }

  async #opened(): Promise<BudgetStore> {
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

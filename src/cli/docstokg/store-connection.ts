import { resolve } from "node:path";
import type { Command } from "commander";
import { quote } from "../../core/text/quote.ts";
import { StoreError } from "../../errors.ts";
import { Observer } from "../../http/observer.ts";
import { Operator } from "../../http/operator.ts";
import { type LoadedPolicy, loadPolicy } from "../../policy/load.ts";
import { operatorStoreFor, readerFor } from "../../stores/open-reader.ts";
import { type StoreName, sharedStoreName } from "../../stores/open-store.ts";
import { isPostgresUrl, parsePostgresStoreUrl } from "../../stores/postgres/postgres-store-url.ts";
import { addressText, isRedisUrl, parseRedisUrl } from "../../stores/redis/redis-url.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Flags, Io } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { policySources } from "./policy-flags.ts";
import { type SqliteFileProblem, sqliteFileProblem } from "./sqlite-file-problem.ts";

/** The store that running processes share, opened by a command. */
export interface StoreConnection extends AsyncDisposable {
  /** The policy of this command. */
  readonly policy: LoadedPolicy;
  /** The name to print, without credentials. */
  readonly storeName: string;
  readonly observer: Observer;
  /** Rejects with a StoreError if the file has been deleted: reading the store would create it again. */
  checkStoreFile(): Promise<void>;
}

/** No store can be opened: none is configured, or no process has used it yet. */
export interface NoStoreConnection extends AsyncDisposable {
  readonly policy: LoadedPolicy;
  readonly problem: string;
  readonly cause: NoStoreCause;
}

/**
 * `not-configured`: processes share nothing. `unused`: no process has used the store yet. `no-folder`: as `unused`, and
 * the folder of its file is missing. `unusable`: the file is damaged, no store, or cannot be created.
 */
export type NoStoreCause = "not-configured" | "unused" | "no-folder" | "unusable";

const NO_SHARED_STORE =
  "no shared store: each process keeps its rate limits and circuits in its own memory. " +
  "Configure one (DOCSTOKG_RLIMIT_BACKEND=multiprocess, or backend in ratelimits.yaml), or name it with --store";

export function addStoreFlag(command: Command): void {
  command.option(
    "--store <store>",
    "shared store of the running processes: multiprocess, sqlite:<file>, redis://… or postgres://… (default: from the policy)",
  );
}

/** Rejects with a ConfigError if there is no shared store (law S6). */
export async function openStoreConnection(flags: Flags, io: Io): Promise<StoreConnection> {
  const connection = await openOptionalStoreConnection(flags, io);
  if ("problem" in connection) throw usageError("store", connection.problem);
  return connection;
}

/** A store through which a command gives orders. */
export interface OperatorConnection extends AsyncDisposable {
  readonly policy: LoadedPolicy;
  readonly storeName: string;
  readonly operator: Operator;
}

/** As `openStoreConnection`, with the right to write. */
export async function openOperatorConnection(flags: Flags, io: Io): Promise<OperatorConnection> {
  const policy = await loadPolicy(policySources(flags, io));
  const { env, time = systemTime } = io;
  const deps = { policy, env, time, random: Math.random };
  const name = sharedStoreName(storeFlagOf(flags), deps);
  const store = operatorStoreFor(name, deps);
  if (store === undefined) throw usageError("store", NO_SHARED_STORE);
  const problem = await sqliteFileProblem(name, "store");
  if (problem !== undefined) throw usageError("store", problem.message);
  return {
    policy,
    storeName: redactedStoreName(name),
    operator: new Operator(store),
    [Symbol.asyncDispose]: async () => store.close(),
  };
}

export async function openOptionalStoreConnection(flags: Flags, io: Io): Promise<StoreConnection | NoStoreConnection> {
  const policy = await loadPolicy(policySources(flags, io));
  const { env, time = systemTime } = io;
  const name = sharedStoreName(storeFlagOf(flags), { policy, env });
  const reader = readerFor(name, time);
  const none = { policy, [Symbol.asyncDispose]: async () => undefined };
  if (reader === undefined) return { ...none, problem: NO_SHARED_STORE, cause: "not-configured" };
  const problem = await sqliteFileProblem(name, "store");
  if (problem !== undefined) return { ...none, problem: problem.message, cause: causeOf(problem) };
  return {
    policy,
    storeName: redactedStoreName(name),
    observer: new Observer(reader),
    checkStoreFile: async () => {
      const fileProblem = await sqliteFileProblem(name, "store");
      if (fileProblem !== undefined) throw new StoreError(fileProblem.message);
    },
    [Symbol.asyncDispose]: async () => reader.close(),
  };
}

function causeOf({ isUnused, lacksFolder }: SqliteFileProblem): NoStoreCause {
  if (!isUnused) return "unusable";
  return lacksFolder ? "no-folder" : "unused";
}

function storeFlagOf({ store }: Flags): StoreName | undefined {
  if (typeof store !== "string") return undefined;
  if (isRedisUrl(store) || isPostgresUrl(store) || /^(?:memory|multiprocess|sqlite:.+)$/s.test(store))
    return store as StoreName;
  throw usageError(
    "--store",
    `unknown store ${quote(store)}; expected multiprocess, sqlite:<file>, redis://… or postgres://…`,
  );
}

/** Without the user name and password of a server's URL. */
function redactedStoreName(name: string): string {
  if (name.startsWith("sqlite:")) return `sqlite:${resolve(name.slice("sqlite:".length))}`;
  if (isPostgresUrl(name)) return parsePostgresStoreUrl(name).name;
  return `${name.slice(0, name.indexOf("://"))}://${addressText(parseRedisUrl(name))}`;
}

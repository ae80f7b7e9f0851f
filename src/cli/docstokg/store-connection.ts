import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Command } from "commander";
import { ConfigError, StoreError } from "../../errors.ts";
import { Operator } from "../../http/operator.ts";
import { type LoadedPolicy, loadPolicy } from "../../policy/load.ts";
import { type StoreName, sharedStoreName, storeFor } from "../../stores/open-store.ts";
import { isDamage, messageOf } from "../../stores/sqlite/sqlite-errors.ts";
import type { Store } from "../../stores/store.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Io } from "../program.ts";
import { addPolicyFlags, policySources } from "./policy-flags.ts";

/** Where running programs can be met, and by which name a person knows it. */
export interface StoreConnection {
  readonly policy: LoadedPolicy;
  readonly place: string;
  readonly operator: Operator;
  /** Rejects with a StoreError when its file is gone, which a store that is asked again would make anew. */
  checkStoreFile(): Promise<void>;
}

/** That there is nothing to meet anybody in: each process is on its own, or no program has used the store yet. */
export interface NoStoreConnection {
  readonly policy: LoadedPolicy;
  readonly problem: string;
}

type Options = Readonly<Record<string, unknown>>;

export function addStoreFlags(command: Command): void {
  command.option(
    "--store <store>",
    "the store that the programs share: multiprocess, sqlite:<file> or redis://… (default: as the policy says)",
  );
  addPolicyFlags(command);
}

/** Meets the running programs, or rejects with a ConfigError that says why nobody can be met (law S6). */
export async function withStoreConnection<Result>(
  options: Options,
  io: Io,
  use: (connection: StoreConnection) => Promise<Result>,
): Promise<Result> {
  return withOptionalStoreConnection(options, io, connection => {
    if ("problem" in connection) throw new ConfigError([{ where: "store", path: "", message: connection.problem }]);
    return use(connection);
  });
}

export async function withOptionalStoreConnection<Result>(
  options: Options,
  io: Io,
  use: (connection: StoreConnection | NoStoreConnection) => Promise<Result>,
): Promise<Result> {
  const policy = await loadPolicy(policySources(options, io));
  const { env, time = systemTime } = io;
  const deps = { policy, env, time, random: Math.random };
  const place = sharedStoreName(storeFlagOf(options), deps);
  const store = storeFor(place, deps);
  const problem = store === undefined ? NO_SHARED_STORE : await sqliteFileProblem(place);
  if (store === undefined || problem !== undefined) return use({ policy, problem: problem ?? NO_SHARED_STORE });
  const checkStoreFile = async () => {
    const now = await sqliteFileProblem(place);
    if (now !== undefined) throw new StoreError(now);
  };
  return closeAfter(store, () =>
    use({ policy, place: redactedStoreName(place), operator: new Operator(store), checkStoreFile }),
  );
}

const NO_SHARED_STORE =
  "every process keeps its limits and breakers in its own memory, where nobody else can see or change them. " +
  "Let the programs share a store (DOCSTOKG_RLIMIT_BACKEND=multiprocess, or backend in ratelimits.yaml), " +
  "or say with --store which one they use";

async function closeAfter<Result>(store: Store, use: () => Promise<Result>): Promise<Result> {
  try {
    return await use();
  } finally {
    await store.close();
  }
}

function storeFlagOf({ store }: Options): StoreName | undefined {
  if (typeof store !== "string") return undefined;
  if (/^(?:memory|multiprocess|sqlite:.+|rediss?:\/\/.+)$/s.test(store)) return store as StoreName;
  const message = `${JSON.stringify(store.replace(/\/\/[^/@]*@/, "//…@"))} is no store; expected multiprocess, sqlite:<file> or redis://…`;
  throw new ConfigError([{ where: "--store", path: "", message }]);
}

/**
 * A program that finds no file makes one, and sets aside what is no database. Who only comes to look must do neither:
 * the name may be mistyped.
 */
export async function sqliteFileProblem(place: string): Promise<string | undefined> {
  const [, name] = /^sqlite:(.+)$/s.exec(place) ?? [];
  if (name === undefined) return undefined;
  const file = resolve(name);
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined) return `there is no file ${file}: no program has used it yet`;
  if (size === 0) return `${file} is empty: no program has used it yet`;
  // By SQLite itself: a handle of our own, closed again, would cost this process its locks on the file.
  const { DatabaseSync } = await import("node:sqlite");
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(file, { readOnly: true });
    db.prepare("PRAGMA schema_version").get();
  } catch (error) {
    // Whatever else it is, it is met again when the file is used.
    return isDamage(error) ? `${file} is damaged, or no SQLite file: ${messageOf(error)}` : undefined;
  } finally {
    db?.close();
  }
  return undefined;
}

/** Without what is secret in the address of a server. */
function redactedStoreName(place: string): string {
  if (place.startsWith("sqlite:")) return `sqlite:${resolve(place.slice("sqlite:".length))}`;
  const url = URL.parse(place);
  return url === null ? "redis" : `${url.protocol}//${url.host}${url.pathname}`;
}

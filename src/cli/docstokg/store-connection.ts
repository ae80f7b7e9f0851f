import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Command } from "commander";
import { ConfigError, StoreError } from "../../errors.ts";
import { Operator } from "../../http/operator.ts";
import { type LoadedPolicy, loadPolicy } from "../../policy/load.ts";
import { meetingPlace, type StoreName, storeFor } from "../../stores/open-store.ts";
import { isDamage, messageOf } from "../../stores/sqlite/sqlite-errors.ts";
import type { Store } from "../../stores/store.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Io } from "../program.ts";
import { addPolicyFlags, policySources } from "./policy-flags.ts";

/** Where running programs can be met, and by which name a person knows it. */
export interface Meeting {
  readonly policy: LoadedPolicy;
  readonly place: string;
  readonly operator: Operator;
  /** Rejects with a StoreError when its file is gone, which a store that is asked again would make anew. */
  checkPlace(): Promise<void>;
}

/** That there is nothing to meet anybody in: each process is on its own, or no program has used the store yet. */
export interface NoMeeting {
  readonly policy: LoadedPolicy;
  readonly problem: string;
}

type Options = Readonly<Record<string, unknown>>;

export function addMeetingFlags(command: Command): void {
  command.option(
    "--store <store>",
    "the store that the programs share: multiprocess, sqlite:<file> or redis://… (default: as the policy says)",
  );
  addPolicyFlags(command);
}

/** Meets the running programs, or rejects with a ConfigError that says why nobody can be met (law S6). */
export async function withMeeting<Result>(
  options: Options,
  io: Io,
  act: (meeting: Meeting) => Promise<Result>,
): Promise<Result> {
  return withMeetingIfAny(options, io, met => {
    if ("problem" in met) throw new ConfigError([{ where: "store", path: "", message: met.problem }]);
    return act(met);
  });
}

export async function withMeetingIfAny<Result>(
  options: Options,
  io: Io,
  act: (meeting: Meeting | NoMeeting) => Promise<Result>,
): Promise<Result> {
  const policy = await loadPolicy(policySources(options, io));
  const { env, time = systemTime } = io;
  const room = { policy, env, time, random: Math.random };
  const place = meetingPlace(namedStore(options), room);
  const store = storeFor(place, room);
  const problem = store === undefined ? ALONE : await fileProblem(place);
  if (store === undefined || problem !== undefined) return act({ policy, problem: problem ?? ALONE });
  const checkPlace = async () => {
    const now = await fileProblem(place);
    if (now !== undefined) throw new StoreError(now);
  };
  return closing(store, () => act({ policy, place: shown(place), operator: new Operator(store), checkPlace }));
}

const ALONE =
  "every process keeps its limits and breakers in its own memory, where nobody else can see or change them. " +
  "Let the programs share a store (DOCSTOKG_RLIMIT_BACKEND=multiprocess, or backend in ratelimits.yaml), " +
  "or say with --store which one they use";

async function closing<Result>(store: Store, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act();
  } finally {
    await store.close();
  }
}

function namedStore({ store }: Options): StoreName | undefined {
  if (typeof store !== "string") return undefined;
  if (/^(?:memory|multiprocess|sqlite:.+|rediss?:\/\/.+)$/s.test(store)) return store as StoreName;
  const message = `${JSON.stringify(store.replace(/\/\/[^/@]*@/, "//…@"))} is no store; expected multiprocess, sqlite:<file> or redis://…`;
  throw new ConfigError([{ where: "--store", path: "", message }]);
}

/**
 * A program that finds no file makes one, and sets aside what is no database. Who only comes to look must do neither:
 * the name may be mistyped.
 */
export async function fileProblem(place: string): Promise<string | undefined> {
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
function shown(place: string): string {
  if (place.startsWith("sqlite:")) return `sqlite:${resolve(place.slice("sqlite:".length))}`;
  const url = URL.parse(place);
  return url === null ? "redis" : `${url.protocol}//${url.host}${url.pathname}`;
}

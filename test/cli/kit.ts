import { mkdtempSync, rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after } from "node:test";
import { docstokg } from "../../src/cli/docstokg.ts";
import { type CommandModule, type Io, type Program, runProgram } from "../../src/cli/program.ts";
import { loadPolicy } from "../../src/policy/load.ts";
import type { StoreName } from "../../src/stores/open-store.ts";
import { storeFor } from "../../src/stores/open-store.ts";
import { systemTime } from "../../src/time/system-time.ts";

/** Removed after all tests of a file: a hub that a test closes after it has ended may still create a file. */
const root = mkdtempSync(join(tmpdir(), "docstokg-operating-"));
after(() => rmSync(root, { recursive: true, force: true }));

/** A folder for one test, and the name of a store in it that does not exist yet. */
export async function temporaryFolder() {
  const folder = await mkdtemp(join(root, "test-"));
  return { folder, store: `sqlite:${join(folder, "shared.db")}` as const };
}

/** Creates the file of a store, as the first process that uses it does. */
export async function createStoreFile(store: StoreName): Promise<void> {
  const policy = await loadPolicy({ env: {} });
  const opened = storeFor(store, { policy, env: {}, time: systemTime, random: Math.random });
  await opened?.read("anything");
  await opened?.close();
}

export interface Terminal {
  readonly env?: Readonly<Record<string, string>>;
  readonly columns?: number;
  /** Whether stdout is a terminal. @default false, a pipe */
  readonly isTTY?: boolean;
  /** Text on stdin. */
  readonly input?: string;
  readonly onInterrupt?: Io["onInterrupt"];
}

/** Runs a command line of docstokg in this process, and collects its output. */
export function runCli(argv: readonly string[], terminal: Terminal = {}) {
  return runIn(docstokg, argv, terminal);
}

/** Runs a command line of any program in this process, and collects its output. */
export async function runIn(
  program: Program,
  argv: readonly string[],
  { env = {}, isTTY = false, columns = 200, input, onInterrupt }: Terminal = {},
) {
  let stdout = "";
  let stderr = "";
  const io: Io = {
    argv,
    env,
    stdout: { write: text => (stdout += text), isTTY, columns },
    stderr: { write: text => (stderr += text) },
    stdin: input === undefined ? undefined : Readable.from([input]),
    onInterrupt,
  };
  const exitCode = await runProgram(program, io);
  return { exitCode, stdout, stderr };
}

export interface LoadedCommand {
  /** `["breaker", "open"]`. */
  readonly path: readonly string[];
  readonly module: CommandModule;
}

/** All commands and subcommands of a program, loaded. */
export async function allCommands({ commands }: Program): Promise<readonly LoadedCommand[]> {
  const loaded = await Promise.all(commands.map(async ({ name, load }) => ({ path: [name], module: await load() })));
  return loaded.flatMap(withSubcommands);
}

function withSubcommands({ path, module }: LoadedCommand): readonly LoadedCommand[] {
  const below = (module.commands ?? []).map(({ name, ...rest }) => ({ path: [...path, name], module: rest }));
  return [{ path, module }, ...below.flatMap(withSubcommands)];
}

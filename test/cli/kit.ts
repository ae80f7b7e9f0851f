import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { docstokg } from "../../src/cli/docstokg.ts";
import { type Io, runProgram } from "../../src/cli/program.ts";
import { loadPolicy } from "../../src/policy/load.ts";
import type { StoreName } from "../../src/stores/open-store.ts";
import { storeFor } from "../../src/stores/open-store.ts";
import { systemTime } from "../../src/time/system-time.ts";

/** A folder for a test, and a store in it that no program has used yet. */
export async function temporaryFolder(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "docstokg-operating-"));
  t.after(() => rm(folder, { recursive: true }));
  return { folder, store: `sqlite:${join(folder, "shared.db")}` as const };
}

/** What the first program does that uses a store: makes its file. */
export async function createStoreFile(store: StoreName): Promise<void> {
  const policy = await loadPolicy({ env: {} });
  const opened = storeFor(store, { policy, env: {}, time: systemTime, random: Math.random });
  await opened?.read("anything");
  await opened?.close();
}

export interface Terminal {
  readonly env?: Readonly<Record<string, string>>;
  readonly columns?: number;
  /** Of the shell that the command is typed in; a pipe unless set. */
  readonly isTTY?: boolean;
}

/** Types a command, and reads what it says. */
export async function runCli(argv: readonly string[], { env = {}, isTTY = false, columns = 200 }: Terminal = {}) {
  let stdout = "";
  let stderr = "";
  const io: Io = {
    argv,
    env,
    stdout: { write: text => (stdout += text), isTTY, columns },
    stderr: { write: text => (stderr += text) },
  };
  const exitCode = await runProgram(docstokg, io);
  return { exitCode, stdout, stderr };
}

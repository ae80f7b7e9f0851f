import { hostname } from "node:os";
import { join } from "node:path";
import { LeaseLostError } from "../../harvest/manifest/lease-lost-error.ts";
import { type Manifest, openManifest, type UnfinishedRun } from "../../harvest/manifest/manifest.ts";
import { loadPolicy } from "../../policy/load.ts";
import { storeNamesOf } from "../../stores/open-store.ts";
import { isPostgresUrl } from "../../stores/postgres/postgres-store-url.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import type { CommandModule, Flags, Io } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { openExistingManifest, pathsOf, telemetryFolderOf } from "./path-flags.ts";
import { policySources } from "./policy-flags.ts";
import { recordedCommand } from "./recorded-command.ts";
import { runSession, type SessionOutcome } from "./run-session.ts";
import { addMachineFlags, makeFolders, runSettingsOf } from "./run-settings.ts";
import { exitCodeOf, printSummary } from "./run-summary.ts";
import { parseSettings } from "./shared-settings.ts";
import { reloadedPolicy } from "./worker-policy.ts";

/** `docstokg worker`: takes part in the runs of a PostgreSQL manifest. */
export const worker: CommandModule = {
  configure: command => {
    command
      .option("--manifest <manifest>", "postgres://user@host/database (default: DOCSTOKG_MANIFEST)")
      .option(
        "-o, --out <folder>",
        "output folder, if its path on this machine differs from that of the run (default: that of the run)",
      )
      .option("--stay", "wait for runs instead of ending with the last one; creates the manifest if there is none")
      .option("--sole-worker", "no other process sends requests for this manifest, so limits need no shared store");
    addMachineFlags(command, "do not print the progress");
  },
  run: async (_, flags, io) => {
    const { manifest: name } = pathsOf(flags, io);
    if (!isPostgresUrl(name))
      throw usageError("--manifest", "workers need a PostgreSQL manifest: postgres://user@host/database");
    // A worker that waits for runs may be started before the first of them.
    const manifest = flags["stay"] === true ? await openManifest(name, systemTime) : await openExistingManifest(name);
    try {
      return await workOn(manifest, flags, io);
    } finally {
      await manifest.close();
    }
  },
};

/** Joins runs until none is left, with `--stay` until Ctrl-C. The exit code is the worst of theirs. */
export async function workOn(manifest: Manifest, flags: Flags, io: Io): Promise<ExitCode> {
  const interrupt = new AbortController();
  const { signal } = interrupt;
  const stopListening = io.onInterrupt?.(() => {
    interrupt.abort();
    // Ends the search for a run, which is retried for minutes while the server is away. A run has its own connection.
    manifest.stopWaiting();
  });
  try {
    return await joinRuns(manifest, flags, io, signal);
  } finally {
    stopListening?.();
  }
}

async function joinRuns(manifest: Manifest, flags: Flags, io: Io, signal: AbortSignal): Promise<ExitCode> {
  let exitCode: ExitCode = ExitCode.ok;
  for (let runs = 0; ; runs += 1) {
    const next = await nextRun(manifest, flags["stay"] === true, signal);
    if (signal.aborted) return ExitCode.interrupted;
    if (next === undefined) {
      if (runs === 0) io.stderr.write(`No run of ${manifest.name} has works for a worker.\n`);
      return exitCode;
    }
    try {
      const code = await joinRun(next, flags, io, signal);
      exitCode = Math.max(exitCode, code) as ExitCode;
    } catch (error) {
      // The works of this worker were given back. It joins again with a new lease.
      if (!(error instanceof LeaseLostError)) throw error;
      io.stderr.write(`${error.message}\n`);
    }
  }
}

async function joinRun(run: UnfinishedRun, flags: Flags, io: Io, signal: AbortSignal): Promise<ExitCode> {
  const shared = parseSettings(run.settings, run.id);
  const own = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined));
  const allFlags = { ...shared.flags, ...own };
  const runSettings = runSettingsOf(allFlags, io);
  const telemetryFolder = join(telemetryFolderOf(runSettings), "workers", `${hostname()}-${process.pid}`);
  const settings = { ...runSettings, telemetryFolder };
  await checkStore(shared.policy, flags, io);
  makeFolders(runSettings);
  const outcome: SessionOutcome = await runSession({
    settings,
    flags: allFlags,
    io,
    command: recordedCommand("worker", own),
    joinedRun: run.id,
    signal,
    hub: { policy: shared.policy },
    reloadedPolicy: () => reloadedPolicy(shared.policy, io.env),
    listWorks: async ({ run: joined, counts }) => {
      counts.wanted = (await joined.manifest.reports.report(run.id)).works.pending;
      return true;
    },
  });
  printSummary(outcome, settings, io);
  return exitCodeOf(outcome);
}

/** Several processes that each keep the limits in their own memory would together exceed them. */
async function checkStore(policy: ReturnType<typeof parseSettings>["policy"], flags: Flags, io: Io): Promise<void> {
  if (flags["soleWorker"] === true) return;
  const loaded = await loadPolicy({ ...policySources(flags, io), ...policy });
  if (storeNamesOf(undefined, { policy: loaded, env: io.env }).limits !== "memory") return;
  throw usageError(
    "worker",
    "the limits are not shared with other workers: set --rate-backend redis --rate-dsn redis://… (several machines) or " +
      "--rate-backend multiprocess (one machine), or pass --sole-worker",
  );
}

/** The next run that this worker can join; undefined if there is none or the signal is aborted. */
async function nextRun(
  manifest: Manifest,
  isStaying: boolean,
  signal: AbortSignal,
): Promise<UnfinishedRun | undefined> {
  try {
    return isStaying ? await awaitRun(manifest, signal) : await manifest.nextRun();
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

/** The next run that this worker can join, now or later; undefined if the signal is aborted. */
async function awaitRun(manifest: Manifest, signal: AbortSignal): Promise<UnfinishedRun | undefined> {
  let changed = Promise.withResolvers<void>();
  const wake = () => changed.resolve();
  manifest.watch(wake);
  signal.addEventListener("abort", wake);
  try {
    while (!signal.aborted) {
      const next = await manifest.nextRun();
      if (next !== undefined) return next;
      await changed.promise;
      changed = Promise.withResolvers();
    }
    return undefined;
  } finally {
    signal.removeEventListener("abort", wake);
  }
}

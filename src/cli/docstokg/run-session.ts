import type { ManifestReport } from "../../harvest/manifest/manifest-reports.ts";
import { orderFor } from "../../harvest/resolvers/order.ts";
import { type HarvestRun, openRun } from "../../harvest/run.ts";
import { createHub } from "../../http/create-hub.ts";
import type { Hub } from "../../http/hub.ts";
import type { HubListener, HubOptions, PolicyOptions } from "../../http/hub-options.ts";
import { loadPolicy } from "../../policy/load.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Time, Timer } from "../../time/time.ts";
import { Interrupts } from "../interrupts.ts";
import { hasColour } from "../output/colour.ts";
import { formatCount } from "../output/format.ts";
import { PolicyReloader } from "../policy-reloader.ts";
import type { Flags, Io } from "../program.ts";
import { limitYoungHeap } from "../young-heap.ts";
import { policySources } from "./policy-flags.ts";
import { Progress } from "./progress.ts";
import { filterOf } from "./query-flags.ts";
import { RunCounts } from "./run-counts.ts";
import { recordedFlags } from "./run-flags.ts";
import type { RunPage } from "./run-page.ts";
import { type RunSettings, usableResolvers } from "./run-settings.ts";
import { openMetrics, openTelemetrySession } from "./telemetry-session.ts";

/** After an interrupt, requests in flight have this time to finish. The next run resumes incomplete files. */
const DRAIN_MS = 1500;

/** The open run, for the code that lists its works. */
export interface ListingContext {
  readonly hub: Hub;
  readonly run: HarvestRun;
  readonly counts: RunCounts;
  /** Prints a line above the progress. */
  log(text: string): void;
  /** Aborted by an interrupt: no more works are added. */
  readonly signal: AbortSignal;
}

export interface SessionOptions {
  readonly settings: RunSettings;
  /** The policy flags are read from these. */
  readonly flags: Flags;
  readonly io: Io;
  /** The command line that the manifest records. */
  readonly command: string;
  /** Adds works to the run. Resolves to false if the list was rejected. */
  readonly listWorks: (context: ListingContext) => Promise<boolean>;
  /** Sends no request before all works are listed. @default false */
  readonly isListedFirst?: boolean | undefined;
  /** Id of the run of the manifest to take part in. @default a new run */
  readonly joinedRun?: number | undefined;
  /** What workers need to take part in the run. @default no worker can join it */
  readonly sharedSettings?: string | undefined;
  /**
   * Aborted by an interrupt before the session started: the session then ends at once. Read once, at the start.
   * @default never
   */
  readonly signal?: AbortSignal | undefined;
  /** Lists the works and leaves the requests to workers. @default false */
  readonly isEnqueueOnly?: boolean | undefined;
  /** Hub options in addition to those of the settings. */
  readonly hub?: Pick<HubOptions, "policy" | "network" | "telemetry"> | undefined;
  /** The policy of a reload. @default the files, variables and flags of the start, read again */
  readonly reloadedPolicy?: (() => Promise<PolicyOptions>) | undefined;
  /** Shows the run, and stays open after it. @default that of `--dashboard-port`, which is closed with the run */
  readonly page?: RunPage | undefined;
  readonly time?: Time | undefined;
}

export interface SessionOutcome {
  readonly counts: RunCounts;
  /** The manifest, restricted to the works of this run. */
  readonly report: ManifestReport;
  /** Resolvers that refused this program and were switched off, with their message. */
  readonly switchedOff: ReadonlyMap<string, string>;
  readonly elapsedMs: number;
  readonly wasInterrupted: boolean;
  /** A strict list was rejected; nothing was done. */
  readonly wasRejected: boolean;
}

/** One run: opens hub, manifest, pipeline, telemetry and progress, lists and downloads the works, closes everything. */
export async function runSession(session: SessionOptions): Promise<SessionOutcome> {
  const { settings, io, command, time = systemTime } = session;
  // First, because nothing may be recorded if a port is in use.
  await using ownPage = await openPage(settings);
  await using metrics = await openMetrics(settings);
  const page = session.page ?? ownPage;
  const counts = new RunCounts();
  const resolvers = usableResolvers(settings, io);
  using reloader = await PolicyReloader.open(session.flags, io);
  const { ratelimits } = await loadPolicy({ ...policySources(session.flags, io), ...session.hub?.policy });
  const hub = await openHub(session, counts.listener);
  let telemetry: Telemetry | undefined;
  try {
    const run = await openRun({
      ...settings,
      hub,
      time,
      command,
      resolvers,
      joinedRun: session.joinedRun,
      sharedSettings: session.sharedSettings,
      flags: recordedFlags(session.flags),
      limits: ratelimits.resolved,
      filter: filterOf(session.flags),
      order: work => orderFor(work, resolvers),
      onSettled: (_, state, reason, bytes) => counts.countSettled(state, reason, bytes),
      onDeferred: () => {
        counts.deferred += 1;
      },
    });
    // After `openRun`, because a run that it refuses must not be recorded. No request was sent before.
    telemetry = await openTelemetrySession(settings, `docstokg ${command.split(" ")[0]}`, metrics, io);
    if (telemetry !== undefined) {
      hub.listen(telemetry.listener);
      telemetry.watch(hub);
    }
    limitYoungHeap();
    return await download(session, { hub, run, counts, reloader, page });
  } finally {
    try {
      await hub.destroy();
    } finally {
      await telemetry?.close();
    }
  }
}

function openHub({ settings, flags, io, hub }: SessionOptions, listener: HubListener): Promise<Hub> {
  return createHub({
    ...policySources(flags, io),
    policy: hub?.policy,
    mailto: settings.mailto,
    cache: settings.cache,
    telemetry: [listener, ...(hub?.telemetry ?? [])],
    network: {
      proxy: "env",
      allowPrivate: settings.allowPrivate,
      connectTo: settings.connectTo,
      ...(settings.ca === undefined ? {} : { tls: { ca: settings.ca } }),
      ...hub?.network,
    },
    crawlDelay: true,
    // The pipeline retries: it works on other hosts until this one is free.
    retry: false,
  });
}

/** The live page of `--dashboard-port`. Its code is loaded only then. */
async function openPage({ dashboardPort }: RunSettings): Promise<RunPage | undefined> {
  if (dashboardPort === undefined) return undefined;
  const { RunPage } = await import("./run-page.ts");
  return RunPage.open(dashboardPort);
}

function progressOf({ settings, io, time = systemTime }: SessionOptions, run: HarvestRun, counts: RunCounts): Progress {
  return new Progress({
    out: io.stderr,
    time,
    counts,
    queues: () => run.pipeline.queues(),
    timeLeftMs: () => run.timeLeftMs,
    isQuiet: settings.isQuiet,
    hasColour: hasColour(io.stderr, io.env),
  });
}

interface OpenedSession extends Pick<ListingContext, "hub" | "run" | "counts"> {
  readonly reloader: PolicyReloader;
  readonly page: RunPage | undefined;
}

/** Lists and downloads the works, until they are done or an interrupt ends the run; then closes the run. */
async function download(
  session: SessionOptions,
  { hub, run, counts, reloader, page }: OpenedSession,
): Promise<SessionOutcome> {
  const { settings, io, listWorks, signal, isListedFirst = false, isEnqueueOnly = false, time = systemTime } = session;
  const startedUs = time.monotonicUs();
  const progress = progressOf(session, run, counts);
  if (run.recovered > 0) progress.log(`${formatCount(run.recovered, "file")} recovered from an interrupted run`);
  const reload = async () => hub.reload(await session.reloadedPolicy?.());
  reloader.start({ reload, log: line => progress.log(line) });
  let drainTimer: Timer | undefined;
  const interrupts = new Interrupts(time, {
    onFirst: () => {
      const { inFlight } = run.pipeline;
      const requests = `waiting up to ${DRAIN_MS / 1000} s for ${formatCount(inFlight, "request")} in flight`;
      progress.log(`Stopping: ${inFlight > 0 ? `${requests}; Ctrl-C again stops now.` : "no request is in flight."}`);
      run.pipeline.drain();
      drainTimer = time.setTimer(DRAIN_MS, () => run.stop());
    },
    onAgain: () => run.stop(),
  });
  const stopListening = io.onInterrupt?.(interrupts.receive);
  if (signal?.aborted === true) interrupts.receive();
  let state: "ended" | "interrupted" = "interrupted";
  try {
    if (page !== undefined)
      io.stderr.write(`Dashboard: ${page.show(hub, run, settings.folder, line => progress.log(line))}\n`);
    progress.start();
    let listingError: unknown;
    const listing = listWorks({ hub, run, counts, log: text => progress.log(text), signal: interrupts.signal })
      .finally(() => run.inputEnded())
      .catch(error => {
        // Requests in flight finish and completed works are kept; the error is thrown after that.
        listingError = error;
        run.pipeline.drain();
        return false;
      });
    const listed = Promise.race([listing, interrupts.first.then(() => false)]);
    const isAccepted = isListedFirst || isEnqueueOnly ? await listed : true;
    if (isAccepted && !isEnqueueOnly) {
      await run.pipeline.run();
      await listed;
    } else if (!isAccepted) await run.manifest.rollbackList();
    if (listingError !== undefined) throw listingError;
    const wasInterrupted = interrupts.signal.aborted;
    state = wasInterrupted || !isAccepted ? "interrupted" : "ended";
    const elapsedMs = (time.monotonicUs() - startedUs) / 1000;
    const report = await run.manifest.reports.report(run.id);
    const { switchedOff } = run.pipeline;
    return { counts, report, switchedOff, elapsedMs, wasInterrupted, wasRejected: !isAccepted && !wasInterrupted };
  } catch (error) {
    throw run.manifest.errorFrom(error);
  } finally {
    stopListening?.();
    drainTimer?.cancel();
    progress.stop();
    await page?.runEnded(state);
    await run.close(state);
  }
}

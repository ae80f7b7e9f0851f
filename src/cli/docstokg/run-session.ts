import { manifestError } from "../../harvest/manifest/manifest-file.ts";
import { type ManifestReport, reportOf } from "../../harvest/manifest/manifest-report.ts";
import { orderFor } from "../../harvest/resolvers/order.ts";
import { type HarvestRun, openRun } from "../../harvest/run.ts";
import { createHub } from "../../http/create-hub.ts";
import type { Hub } from "../../http/hub.ts";
import type { HubOptions } from "../../http/hub-options.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Time } from "../../time/time.ts";
import { Interrupts } from "../interrupts.ts";
import { formatCount } from "../output/format.ts";
import type { Flags, Io } from "../program.ts";
import { policySources } from "./policy-flags.ts";
import { Progress } from "./progress.ts";
import { RunCounts } from "./run-counts.ts";
import type { RunSettings } from "./run-settings.ts";
import { openTelemetrySession } from "./telemetry-session.ts";

/** What the listing of works may use while the run is open. */
export interface Feed {
  readonly hub: Hub;
  readonly run: HarvestRun;
  readonly tally: RunCounts;
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
  readonly feed: (feed: Feed) => Promise<boolean>;
  /** Sends no request before all works are listed. @default false */
  readonly isListedFirst?: boolean | undefined;
  /** Hub options in addition to those of the settings. */
  readonly hub?: Pick<HubOptions, "policy" | "network" | "telemetry"> | undefined;
  readonly time?: Time | undefined;
}

export interface SessionOutcome {
  readonly tally: RunCounts;
  /** The manifest, restricted to the works of this run. */
  readonly report: ManifestReport;
  readonly elapsedMs: number;
  readonly wasInterrupted: boolean;
  /** A strict list was rejected; nothing was done. */
  readonly wasRefused: boolean;
}

/** One run: opens hub, manifest, pipeline, telemetry and progress, lists and downloads the works, closes everything. */
export async function runSession(session: SessionOptions): Promise<SessionOutcome> {
  const { settings, io, command, feed, isListedFirst = false, time = systemTime } = session;
  const tally = new RunCounts();
  const resolvers = settings.resolvers.filter(({ name, needs }) => {
    const missing = needs.filter(variable => !isSet(variable, settings, io));
    if (missing.length > 0)
      io.stderr.write(
        `resolver ${name} skipped: ${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} not set\n`,
      );
    return missing.length === 0;
  });
  const telemetrySession = await openTelemetrySession(settings, `docstokg ${command.split(" ")[0]}`, io);
  const listeners = telemetrySession === undefined ? [] : [telemetrySession.telemetry.listener];
  const telemetry = [tally.listener, ...listeners, ...(session.hub?.telemetry ?? [])];
  const hub = await createHub({
    ...policySources(session.flags, io),
    policy: session.hub?.policy,
    mailto: settings.mailto,
    cache: settings.cache,
    telemetry,
    network: {
      allowPrivate: settings.allowPrivate,
      connectTo: settings.connectTo,
      ...(settings.ca === undefined ? {} : { tls: { ca: settings.ca } }),
      ...session.hub?.network,
    },
    // The pipeline retries: it works on other hosts until this one is free.
    retry: false,
  }).catch(async error => {
    await telemetrySession?.close();
    throw error;
  });
  telemetrySession?.telemetry.watch(hub);
  try {
    const run = await openRun({
      ...settings,
      hub,
      time,
      command,
      resolvers,
      order: work => orderFor(work, resolvers),
      onSettled: (_, state, reason, bytes) => tally.settled(state, reason, bytes),
      onDeferred: () => {
        tally.deferred += 1;
      },
    });
    const startedUs = time.monotonicUs();
    const progress = new Progress({
      out: io.stderr,
      time,
      tally,
      queues: () => run.pipeline.queues(),
      isQuiet: settings.isQuiet,
      hasColour: io.stderr.isTTY === true && !io.env["NO_COLOR"],
    });
    if (run.recovered > 0) progress.log(`${formatCount(run.recovered, "file")} recovered from an interrupted run`);
    const interrupts = new Interrupts(time, {
      onFirst: () => {
        const inFlight = formatCount(run.pipeline.inFlight, "request");
        progress.log(`Waiting for ${inFlight} in flight; press Ctrl-C again to stop now.`);
        run.pipeline.drain();
      },
      onAgain: () => run.pipeline.stop(),
    });
    const stopListening = io.onInterrupt?.(interrupts.receive);
    let state: "ended" | "interrupted" = "interrupted";
    try {
      progress.start();
      let listingError: unknown;
      const listing = feed({ hub, run, tally, log: text => progress.log(text), signal: interrupts.signal })
        .catch(error => {
          // Requests in flight finish and completed works are kept; the error is thrown after that.
          listingError = error;
          run.pipeline.drain();
          return false;
        })
        .finally(() => run.pipeline.inputEnded());
      const listed = Promise.race([listing, interrupts.first.then(() => false)]);
      const isWanted = isListedFirst ? await listed : true;
      if (isWanted) {
        await run.pipeline.run();
        await listed;
      } else run.manifest.rollbackList();
      if (listingError !== undefined) throw listingError;
      state = interrupts.signal.aborted || !isWanted ? "interrupted" : "ended";
      const elapsedMs = (time.monotonicUs() - startedUs) / 1000;
      const report = reportOf(run.manifest.db, run.id);
      const wasInterrupted = interrupts.signal.aborted;
      return { tally, report, elapsedMs, wasInterrupted, wasRefused: !isWanted && !wasInterrupted };
    } catch (error) {
      throw manifestError(error);
    } finally {
      stopListening?.();
      progress.stop();
      run.close(state);
    }
  } finally {
    await hub.destroy();
    await telemetrySession?.close();
  }
}

function isSet(variable: string, { mailto }: RunSettings, { env }: Io): boolean {
  return Boolean(env[variable]) || (variable === "DOCSTOKG_MAILTO" && mailto !== undefined);
}

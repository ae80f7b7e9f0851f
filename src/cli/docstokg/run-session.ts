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
import type { Io } from "../program.ts";
import { policySources } from "./policy-flags.ts";
import { Progress } from "./progress.ts";
import { RunCounts } from "./run-counts.ts";
import type { RunSettings } from "./run-settings.ts";
import { openTelemetrySession } from "./telemetry-session.ts";

/** What is done while a run is open: listing works, and telling of lines that name none. */
export interface Feed {
  readonly hub: Hub;
  readonly run: HarvestRun;
  readonly tally: RunCounts;
  /** A line for whoever watches. */
  log(text: string): void;
  /** The run was interrupted: no more works are wanted. */
  readonly signal: AbortSignal;
}

export interface SessionOptions {
  readonly settings: RunSettings;
  /** As they were given, for the policy's flags. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly io: Io;
  /** As the manifest keeps it. */
  readonly command: string;
  /** Lists works. Resolves to false when the list is not to be worked on. */
  readonly feed: (feed: Feed) => Promise<boolean>;
  /** Lists everything before the first request goes out. */
  readonly isListedFirst?: boolean | undefined;
  /** What the hub is told beside what the settings say. */
  readonly hub?: Pick<HubOptions, "policy" | "network" | "telemetry"> | undefined;
  readonly time?: Time | undefined;
}

export interface SessionOutcome {
  readonly tally: RunCounts;
  /** What the manifest says of the works that this run wanted. */
  readonly report: ManifestReport;
  readonly elapsedMs: number;
  readonly wasInterrupted: boolean;
  /** Nothing was done, because the list was refused. */
  readonly wasRefused: boolean;
}

/** One run from its first line to its last: hub, manifest, pipeline, progress and interrupts. */
export async function runSession(session: SessionOptions): Promise<SessionOutcome> {
  const { settings, io, command, feed, isListedFirst = false, time = systemTime } = session;
  const tally = new RunCounts();
  const resolvers = settings.resolvers.filter(({ name, needs }) => {
    const missing = needs.filter(variable => !isSet(variable, settings, io));
    if (missing.length > 0) io.stderr.write(`${name} is left out: it needs ${missing.join(" and ")}\n`);
    return missing.length === 0;
  });
  const telemetrySession = await openTelemetrySession(settings, `docstokg ${command.split(" ")[0]}`, io);
  const listeners = telemetrySession === undefined ? [] : [telemetrySession.telemetry.listener];
  const telemetry = [tally.listener, ...listeners, ...(session.hub?.telemetry ?? [])];
  const hub = await createHub({
    ...policySources(session.options, io),
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
    // The pipeline comes again by itself, when the host is free, and does other things meanwhile.
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
        tally.putOff += 1;
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
    if (run.recovered > 0) progress.log(`${formatCount(run.recovered, "file")} of an interrupted run put in place`);
    const interrupts = new Interrupts(time, {
      onFirst: () => {
        const inFlight = formatCount(run.pipeline.inFlight, "request");
        progress.log(`Finishing ${inFlight} under way; Ctrl-C again to stop at once.`);
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
          // What is under way is brought to its end first; what is done is kept.
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

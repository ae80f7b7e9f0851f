import { stat } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Manifest } from "../harvest/manifest/manifest.ts";
import { type ExplainedValue, explainTarget } from "../policy/explanation.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import { isRole, unknownRoleMessage } from "../policy/roles.ts";
import type { TelemetryEvent } from "../telemetry/events.ts";
import { RUN_FILES, type TelemetryFile } from "../telemetry/reading/telemetry-file.ts";
import type { Time } from "../time/time.ts";
import type { HostState, SeriesPoint, WorkHistoryState } from "./dashboard-state.ts";
import { EventHosts, HOSTS_MAX } from "./event-hosts.ts";
import { EventLog } from "./event-log.ts";
import { hostStates } from "./host-states.ts";
import { RateSeries } from "./rate-series.ts";
import { readRunState } from "./run-state.ts";
import type { DashboardSource, SourceState } from "./source.ts";

/** The charts of a whole run have at most this many steps. */
const STEPS_MAX = 600;
const SECOND_MS = 1000;
const DAY_MS = 86_400_000;
/** After a read of the telemetry comes a pause this many times as long: reading needs below 5 % of one core. */
const IDLE_FACTOR = 20;

const PARTIAL = `The run has called more than ${HOSTS_MAX} hosts. Only the first ones are listed; docstokg report has all.`;

export interface RunSourceOptions {
  readonly folder: string;
  readonly manifest: Manifest;
  /** Undefined if the run has recorded none. */
  readonly telemetry: TelemetryFile | undefined;
  readonly policy: LoadedPolicy;
  readonly time: Time;
}

/** A running or finished run: its works from the manifest, its requests from the telemetry. */
export class RunSource implements DashboardSource {
  readonly about;
  readonly actions = undefined;
  readonly log = new EventLog();
  readonly #options: RunSourceOptions;
  #events: RunEvents = emptyEvents();
  #hosts: ReadonlyMap<string, HostState> = new Map();
  #fileState = "";
  #nextReadUs = 0;

  constructor(options: RunSourceOptions) {
    this.#options = options;
    this.about = {
      kind: "run" as const,
      name: options.folder,
      hasEvents: options.telemetry !== undefined,
      hasOutcomes: true,
    };
  }

  async read(): Promise<SourceState> {
    const { manifest, folder, time } = this.#options;
    const run = await readRunState(manifest, { folder });
    await this.#readTelemetry();
    const { hosts: eventHosts, series, lastMs } = this.#events;
    const isOver = run?.state !== "running";
    const nowMs = isOver ? lastMs : time.wallMs();
    const hosts = hostStates(
      eventHosts.breakers(nowMs, isOver),
      [{ keys: eventHosts.keys(), ageMs: 0 }],
      nowMs,
      this.#hosts,
    );
    this.#hosts = new Map(hosts.map(host => [host.name, host]));
    return {
      totals: { calls: 0, inFlight: 0, waiting: 0 },
      hosts,
      processes: [],
      series: coarsened(series.since(0), nowMs),
      events: this.log.takeAll(),
      run,
      trouble: eventHosts.isPartial ? PARTIAL : null,
    };
  }

  explain(name: string, role: string): readonly ExplainedValue[] {
    if (!isRole(role)) throw new RangeError(unknownRoleMessage(role));
    return explainTarget(this.#options.policy, name, role);
  }

  workHistory(key: string): Promise<WorkHistoryState | undefined> {
    return this.#options.manifest.reports.workHistory(key);
  }

  setWatched(): void {
    // Nothing is prepared for pages in advance.
  }

  async close(): Promise<void> {
    this.#options.telemetry?.close();
    await this.#options.manifest.close();
  }

  /** Reads the events that were added since the last call. The file of a finished run is read once. */
  async #readTelemetry(): Promise<void> {
    const { telemetry, time } = this.#options;
    if (telemetry === undefined || time.monotonicUs() < this.#nextReadUs) return;
    const fileState = await stateOf(telemetry.path);
    if (fileState === this.#fileState) return;
    const startUs = time.monotonicUs();
    const runId = (await telemetry.runs()).at(-1)?.runId;
    if (runId !== undefined) await this.#takeNew(telemetry, runId);
    this.#fileState = fileState;
    const endUs = time.monotonicUs();
    this.#nextReadUs = endUs + (endUs - startUs) * IDLE_FACTOR;
  }

  async #takeNew(telemetry: TelemetryFile, runId: string): Promise<void> {
    if (this.#events.runId !== runId) {
      this.#events = emptyEvents(runId);
      this.log.clear();
    }
    const events = this.#events;
    let position = 0;
    for await (const event of telemetry.events(runId)) {
      position += 1;
      if (position === 1) {
        // The oldest files of a long run were deleted, so the positions have changed.
        if (events.first !== undefined && !isDeepStrictEqual(event, events.first))
          events.taken = await positionOf(events.last, telemetry, runId);
        events.first = event;
      }
      if (position <= events.taken) continue;
      events.taken = position;
      events.last = event;
      events.lastMs = Math.max(events.lastMs, event.ts);
      events.series.take(event);
      events.hosts.take(event);
      this.log.take(event, false);
    }
  }
}

interface RunEvents {
  readonly runId: string;
  readonly series: RateSeries;
  readonly hosts: EventHosts;
  /** The number of events, from the first one in the file, that are counted. */
  taken: number;
  /** The first event in the file when it was read the last time. */
  first: TelemetryEvent | undefined;
  /** The last event that is counted. */
  last: TelemetryEvent | undefined;
  /** The time of the latest event. */
  lastMs: number;
}

function emptyEvents(runId = ""): RunEvents {
  const series = new RateSeries({ stepMs: SECOND_MS, keepMs: DAY_MS });
  return { runId, series, hosts: new EventHosts(), taken: 0, first: undefined, last: undefined, lastMs: 0 };
}

/** The position of an event in the file, from 1; 0 if the file does not have it. */
async function positionOf(
  wanted: TelemetryEvent | undefined,
  telemetry: TelemetryFile,
  runId: string,
): Promise<number> {
  let position = 0;
  let found = 0;
  for await (const event of telemetry.events(runId)) {
    position += 1;
    if (event.ts === wanted?.ts && isDeepStrictEqual(event, wanted)) found = position;
  }
  return found;
}

/**
 * Changes with each write to the file, or to the files of a folder. SQLite writes to the file `-wal` first, and copies its
 * content into the main file later.
 */
async function stateOf(path: string): Promise<string> {
  const inFolder = Object.values(RUN_FILES).map(name => join(path, name));
  const files = [path, ...inFolder]
    .flatMap(file => [file, `${file}-wal`])
    .map(async file => {
      const stats = await stat(file).catch(() => undefined);
      return stats === undefined ? "" : `${stats.ino} ${stats.size} ${stats.mtimeMs}`;
    });
  return (await Promise.all(files)).join(", ");
}

/** The points from the first one to `toMs`, in at most `STEPS_MAX` steps. */
function coarsened(points: readonly SeriesPoint[], toMs: number): SourceState["series"] {
  const [first] = points;
  if (first === undefined) return { stepMs: SECOND_MS, points };
  let stepMs = SECOND_MS;
  while ((toMs - first.atMs) / stepMs > STEPS_MAX) stepMs *= 2;
  if (stepMs === SECOND_MS) return { stepMs, points };
  const series = new RateSeries({ stepMs, keepMs: STEPS_MAX * 2 * stepMs });
  for (const { atMs, waitMs, ...counts } of points) {
    series.raise("waitMs", waitMs, atMs);
    for (const [name, count] of Object.entries(counts)) series.add(name as keyof typeof counts, count, atMs);
  }
  return { stepMs, points: series.since(0) };
}

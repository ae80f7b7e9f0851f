import { hostname } from "node:os";
import { basename } from "node:path";
import type { Hub } from "../http/hub.ts";
import type { HubEvent } from "../http/hub-options.ts";
import { isWorthShowing } from "../http/process-row.ts";
import type { ExplainedValue } from "../policy/explanation.ts";
import type { Role } from "../policy/roles.ts";
import type { TelemetryEvent } from "../telemetry/events.ts";
import type { Time } from "../time/time.ts";
import type { DashboardActions } from "./actions.ts";
import type { HostState, ProcessState } from "./dashboard-state.ts";
import { EventLog } from "./event-log.ts";
import { isRoutineEvent } from "./event-row.ts";
import { type BreakerFacts, hostStates } from "./host-states.ts";
import { RateSeries } from "./rate-series.ts";
import type { DashboardSource, SourceState } from "./source.ts";

const SERIES_STEP_MS = 1000;
const SERIES_KEEP_MS = 15 * 60_000;

/** The hub of this process. Events are counted from the start, so that the charts show the time before a page connects. */
export class HubSource implements DashboardSource {
  readonly about;
  readonly actions: DashboardActions | undefined;
  readonly log = new EventLog();
  readonly #hub: Hub;
  readonly #time: Time;
  readonly #startedMs: number;
  readonly #series = new RateSeries({ stepMs: SERIES_STEP_MS, keepMs: SERIES_KEEP_MS });
  readonly #stopListening: () => void;
  #hosts: ReadonlyMap<string, HostState> = new Map();
  #isWatched = false;

  /** @param actions undefined if the page is read-only */
  constructor(hub: Hub, time: Time, actions?: DashboardActions) {
    this.#hub = hub;
    this.actions = actions;
    this.#time = time;
    this.#startedMs = time.wallMs();
    this.about = {
      kind: "hub" as const,
      name: `${programName()}, pid ${process.pid}`,
      hasEvents: true,
      hasOutcomes: true,
    };
    this.#stopListening = hub.listen(event => this.#take(event));
  }

  async read(): Promise<SourceState> {
    const { calls, inFlight, waiting, keys, hosts } = this.#hub.snapshot();
    const nowMs = this.#time.wallMs();
    const used = keys.filter(isWorthShowing);
    const states = hostStates(
      [...hosts.map(breakerFacts), ...this.#resolvers()],
      [{ keys: used, ageMs: 0 }],
      nowMs,
      this.#hosts,
    );
    this.#hosts = new Map(states.map(host => [host.name, host]));
    return {
      totals: { calls, inFlight, waiting },
      hosts: states,
      processes: [this.#process({ calls, inFlight, waiting, keys: used.length })],
      series: { stepMs: this.#series.stepMs, points: this.#series.since(nowMs - SERIES_KEEP_MS) },
      events: this.log.takeAll(),
      run: null,
    };
  }

  explain(name: string, role: string): readonly ExplainedValue[] {
    return this.#hub.explain(name, role as Role);
  }

  setWatched(isWatched: boolean): void {
    this.#isWatched = isWatched;
  }

  async close(): Promise<void> {
    this.#stopListening();
  }

  #resolvers(): readonly BreakerFacts[] {
    return this.#hub.breakers
      .list()
      .filter(({ kind }) => kind === "resolver")
      .map(({ name, state, reason, remainingMs }) => ({
        ...{ kind: "resolver" as const, name, state, reason, remainingMs, isCooling: false, windowFailures: 0 },
        circuits: [{ name: "", state, remainingMs, probes: 0 }],
      }));
  }

  #take(event: HubEvent): void {
    const ts = this.#time.wallMs();
    // Most events belong to ordinary requests. Without a page only their counts are needed, and these need no envelope.
    const isCounted = !this.#isWatched && isRoutineEvent(event as TelemetryEvent);
    const stamped = (isCounted ? event : { ...event, ts, run_id: "", config_hash: "" }) as TelemetryEvent;
    this.#series.take(stamped, ts);
    if (!isCounted) this.log.take(stamped, this.#isWatched);
  }

  #process(counts: Pick<ProcessState, "calls" | "inFlight" | "waiting" | "keys">): ProcessState {
    return {
      id: String(process.pid),
      pid: process.pid,
      machine: hostname(),
      program: programName(),
      startedMs: this.#startedMs,
      writtenMs: null,
      isPartial: false,
      ...counts,
    };
  }
}

function programName(): string {
  return basename(process.argv[1] ?? "node");
}

function breakerFacts(status: ReturnType<Hub["snapshot"]>["hosts"][number]): BreakerFacts {
  const { host: name, state, reason, remainingMs, cooldownMs, windowFailures, roles } = status;
  const circuits = roles.map(({ role, ...circuit }) => ({ name: role, ...circuit }));
  const isCooling = cooldownMs > 0;
  return { kind: "host", name, state, reason, remainingMs, isCooling, windowFailures, circuits };
}

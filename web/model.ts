/** The state of the server as the page knows it. Patches of the server keep it up to date. */
import type {
  DashboardPatch,
  DashboardState,
  EventRow,
  HostState,
  SeriesPoint,
} from "../src/dashboard/dashboard-state.ts";

const EVENTS_MAX = 2000;

export class Model {
  state: DashboardState;
  readonly hosts = new Map<string, HostState>();
  /** Oldest first. */
  events: EventRow[];
  points: SeriesPoint[];
  /** The clock of the server minus the clock of the browser, in ms. */
  readonly #offsetMs: number;

  constructor(state: DashboardState) {
    this.state = state;
    this.events = [...state.events];
    this.points = [...state.series.points];
    this.#offsetMs = state.nowMs - Date.now();
    for (const host of state.hosts) this.hosts.set(host.name, host);
  }

  /** The time of the server. It stands still after the end of a run: no circuit opens or closes any more. */
  get nowMs(): number {
    return this.state.run?.endedMs ?? Date.now() + this.#offsetMs;
  }

  apply(patch: DashboardPatch): void {
    const { hosts = [], gone = [], points = [], events = [], ...parts } = patch;
    this.state = { ...this.state, ...parts };
    for (const host of hosts) this.hosts.set(host.name, host);
    for (const name of gone) this.hosts.delete(name);
    if (parts.series !== undefined) this.points = [...parts.series.points];
    for (const point of points) {
      if (this.points.at(-1)?.atMs === point.atMs) this.points.pop();
      this.points.push(point);
    }
    const stepsMax = this.state.about.kind === "run" ? 5000 : 900;
    if (this.points.length > stepsMax * 2) this.points = this.points.slice(-stepsMax);
    this.events.push(...events);
    if (this.events.length > EVENTS_MAX * 2) this.events = this.events.slice(-EVENTS_MAX);
  }

  /**
   * Hosts by the attention that they need. Within a level the order follows powers of two of the amount and then the
   * name, so that rows do not change places every second.
   */
  sortedHosts(): readonly HostState[] {
    return [...this.hosts.values()].sort(
      (a, b) => orderOf(b.attention) - orderOf(a.attention) || (a.name < b.name ? -1 : 1),
    );
  }
}

/** As in src/dashboard/attention.ts: hosts below this level need no attention. */
const LEVEL = 1_000_000;

export function needsAttention({ attention }: HostState): boolean {
  return attention >= LEVEL;
}

function orderOf(attention: number): number {
  const level = Math.floor(attention / LEVEL);
  return level * 100 + (level === 0 ? 0 : Math.floor(Math.log2((attention % LEVEL) + 1)));
}

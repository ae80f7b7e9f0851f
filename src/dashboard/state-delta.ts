import type { DashboardPatch, DashboardState, HostState, SeriesPoint, SeriesState } from "./dashboard-state.ts";

/** Keeps the state that was sent to the pages, and finds the changes since then. */
export class StateDelta {
  readonly #hosts = new Map<string, string>();
  readonly #parts = new Map<string, string>();
  /** The last point that was sent. */
  #lastPoint: SeriesPoint | undefined;
  #stepMs: number | undefined;
  #seq = 0;

  /**
   * The change from the previous state to this one: a DashboardPatch as JSON, or undefined if nothing has changed. The
   * JSON of each host is built once, for the comparison and for the patch: thousands of hosts may change at once.
   */
  next(state: DashboardState): string | undefined {
    const hosts = this.#changedHosts(state.hosts);
    const names = new Set(state.hosts.map(({ name }) => name));
    const gone = [...this.#hosts.keys()].filter(name => !names.has(name));
    for (const name of gone) this.#hosts.delete(name);
    const isNewSeries = this.#isNewSeries(state.series);
    this.#stepMs = state.series.stepMs;
    const points = this.#newPoints(state.series.points);
    const events = state.events.filter(({ seq }) => seq > this.#seq);
    this.#seq = events.at(-1)?.seq ?? this.#seq;
    const changes: Omit<DashboardPatch, "nowMs" | "hosts"> = {
      ...(gone.length > 0 && { gone }),
      ...(isNewSeries ? { series: state.series } : points.length > 0 && { points }),
      ...(events.length > 0 && { events }),
      ...this.#changedPart("totals", state),
      ...this.#changedPart("processes", state),
      ...this.#changedPart("run", state),
      ...this.#changedPart("trouble", state),
    };
    if (hosts.length === 0 && Object.keys(changes).length === 0) return undefined;
    const others = JSON.stringify({ nowMs: state.nowMs, ...changes });
    return hosts.length === 0 ? others : `${others.slice(0, -1)},"hosts":[${hosts.join(",")}]}`;
  }

  /** As JSON. */
  #changedHosts(hosts: readonly HostState[]): readonly string[] {
    const changed: string[] = [];
    for (const host of hosts) {
      const text = JSON.stringify(host);
      if (this.#hosts.get(host.name) === text) continue;
      this.#hosts.set(host.name, text);
      changed.push(text);
    }
    return changed;
  }

  #changedPart<Name extends "totals" | "processes" | "run" | "trouble">(
    name: Name,
    state: DashboardState,
  ): Pick<DashboardPatch, Name> | undefined {
    const text = JSON.stringify(state[name]);
    if (this.#parts.get(name) === text) return undefined;
    this.#parts.set(name, text);
    return { [name]: state[name] } as Pick<DashboardPatch, Name>;
  }

  /** Whether the steps have another length, or begin after those that were sent, such as those of a further run. */
  #isNewSeries({ stepMs, points: [first] }: SeriesState): boolean {
    if (this.#stepMs !== undefined && this.#stepMs !== stepMs) return true;
    return first !== undefined && this.#lastPoint !== undefined && first.atMs > this.#lastPoint.atMs;
  }

  /** Steps after the last one that was sent, and that one again if it has grown. */
  #newPoints(points: readonly SeriesPoint[]): readonly SeriesPoint[] {
    const sent = this.#lastPoint;
    this.#lastPoint = points.at(-1) ?? sent;
    if (sent === undefined) return points;
    return points.filter(
      point => point.atMs > sent.atMs || (point.atMs === sent.atMs && JSON.stringify(point) !== JSON.stringify(sent)),
    );
  }
}

import assert from "node:assert/strict";
import { test } from "node:test";
import type { DashboardPatch, DashboardState, EventRow, HostState, SeriesPoint } from "./dashboard-state.ts";
import { StateDelta } from "./state-delta.ts";

function host(name: string, windowFailures = 0): HostState {
  return {
    ...{ name, kind: "host", state: "closed", reason: null, untilMs: null, windowFailures, circuits: [], keys: [] },
    ...{ isCooling: false, attention: 0, why: "" },
  };
}

function point(atMs: number, requests: number): SeriesPoint {
  return { atMs, requests, waitMs: 0, throttles: 0, hits: 0, failures: 0, refused: 0 };
}

const EMPTY: DashboardState = {
  nowMs: 0,
  about: { kind: "hub", name: "x", hasEvents: true, hasOutcomes: true, actions: [], canAsk: false, actionToken: "" },
  totals: { calls: 0, inFlight: 0, waiting: 0 },
  hosts: [],
  processes: [],
  series: { stepMs: 1000, points: [] },
  events: [],
  run: null,
  trouble: null,
};

function nextOf(delta: StateDelta, state: DashboardState): DashboardPatch | undefined {
  const text = delta.next(state);
  return text === undefined ? undefined : (JSON.parse(text) as DashboardPatch);
}

test("a state in which nothing changed makes no patch", () => {
  const delta = new StateDelta();
  delta.next({ ...EMPTY, hosts: [host("a.example")] });
  assert.equal(nextOf(delta, { ...EMPTY, nowMs: 1000, hosts: [host("a.example")] }), undefined);
});

test("a patch holds changed and new hosts and the names of those that are gone", () => {
  const delta = new StateDelta();
  delta.next({ ...EMPTY, hosts: [host("a.example"), host("b.example"), host("c.example")] });
  const next = { ...EMPTY, nowMs: 1, hosts: [host("a.example"), host("b.example", 1), host("d.example")] };
  assert.deepEqual(nextOf(delta, next), {
    nowMs: 1,
    hosts: [host("b.example", 1), host("d.example")],
    gone: ["c.example"],
  });
});

test("a step of the charts is sent again while it grows, and older ones are not", () => {
  const delta = new StateDelta();
  const series = (...points: SeriesPoint[]) => ({ ...EMPTY, series: { stepMs: 1000, points } });
  delta.next(series(point(0, 1), point(1000, 1)));
  assert.deepEqual(nextOf(delta, series(point(0, 1), point(1000, 2)))?.points, [point(1000, 2)]);
  assert.deepEqual(nextOf(delta, series(point(1000, 2), point(2000, 1)))?.points, [point(2000, 1)]);
  assert.equal(nextOf(delta, series(point(1000, 2), point(2000, 1))), undefined);
});

test("the charts are sent completely when none of the steps that were sent is left", () => {
  const delta = new StateDelta();
  const series = (...points: SeriesPoint[]) => ({ ...EMPTY, series: { stepMs: 1000, points } });
  delta.next(series(point(0, 1), point(1000, 1)));
  const next = series(point(90_000, 1), point(91_000, 2));
  assert.deepEqual(nextOf(delta, next), { nowMs: 0, series: next.series });
  assert.equal(nextOf(delta, next), undefined);
  delta.next(series());
  assert.deepEqual(nextOf(delta, series(point(99_000, 1))), { nowMs: 0, series: series(point(99_000, 1)).series });
});

test("the charts are sent completely when the length of their steps changes", () => {
  const delta = new StateDelta();
  delta.next({ ...EMPTY, series: { stepMs: 1000, points: [point(0, 1), point(1000, 1)] } });
  const series = { stepMs: 2000, points: [point(0, 2)] };
  assert.deepEqual(nextOf(delta, { ...EMPTY, series }), { nowMs: 0, series });
});

test("each event is sent once", () => {
  const delta = new StateDelta();
  const event = (seq: number): EventRow => ({
    seq,
    atMs: 0,
    type: "x",
    host: "",
    role: "",
    text: "",
    level: "info",
    isRoutine: false,
  });
  assert.equal(nextOf(delta, { ...EMPTY, events: [event(1), event(2)] })?.events?.length, 2);
  assert.deepEqual(nextOf(delta, { ...EMPTY, events: [event(1), event(2), event(5)] })?.events, [event(5)]);
});

test("an error of the source is sent when it begins and when it ends", () => {
  const delta = new StateDelta();
  delta.next(EMPTY);
  assert.deepEqual(nextOf(delta, { ...EMPTY, trouble: "locked" }), { nowMs: 0, trouble: "locked" });
  assert.deepEqual(nextOf(delta, EMPTY), { nowMs: 0, trouble: null });
});

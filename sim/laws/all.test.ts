import assert from "node:assert/strict";
import { test } from "node:test";
import type { HubEvent } from "../../src/http/hub-options.ts";
import { partitionName } from "../../src/policy/partition-name.ts";
import { HOST, plainCall, plainPlan, requestAt, violationsOf } from "../../test/sim/kit.ts";
import type { ResponseFact, SimFact, WireRequest } from "../facts.ts";
import type { CallPlan, HostPlan, Plan } from "../plan.ts";
import { ALL_LAWS } from "./all.ts";
import { anyWindowOfProcess } from "./any-window.ts";
import { anyWindowAtServer } from "./any-window-at-server.ts";
import { fewAttempts } from "./attempts.ts";
import { boundedWait } from "./bounded-wait.ts";
import { hitsCostNothing } from "./cache-hits.ts";
import { fewProbes, noSendWhileOpen, noStaleResult } from "./circuits.ts";
import { conservation } from "./conservation.ts";
import { noSendInCooldown } from "./cooldowns.ts";
import { costsWithinWindows } from "./costs.ts";
import { trueEstimates } from "./estimates.ts";
import { unobservableEviction } from "./eviction.ts";
import { explainedRefusals } from "./explained-refusals.ts";
import { fairness } from "./fairness.ts";
import { keepsHistory } from "./history.ts";
import { fewInFlight } from "./in-flight.ts";
import { noLateAttempt } from "./late-attempts.ts";
import { noExhaustedBound } from "./late-refusals.ts";
import type { LawMaker } from "./law.ts";
import { liveness } from "./liveness.ts";
import { ownResponses } from "./partitions.ts";
import { resumesSlowly } from "./ramp-up.ts";
import { noRejection } from "./rejection.ts";
import { share } from "./share.ts";
import { slowCallsCoolDown } from "./slow-calls.ts";
import { burstsCountOnce } from "./throttles.ts";
import { nothingWithoutStore } from "./without-store.ts";

// A law that cannot fail proves nothing: each gets facts that violate it, and similar facts that do not.

interface Case {
  readonly law: LawMaker;
  readonly plan?: Plan;
  readonly violating: readonly SimFact[];
  readonly valid: readonly SimFact[];
  readonly touched?: readonly WireRequest[];
}

const us = (atMs: number) => atMs * 1000;
const written = (atMs: number): SimFact => ({ kind: "written", atUs: us(atMs), request: requestAt(atMs) });
const arrived = (atMs: number): SimFact => ({ kind: "arrived", atUs: us(atMs), request: requestAt(atMs) });
const sent = (atMs: number, changes: Partial<WireRequest> = {}): SimFact => ({
  kind: "dispatched",
  atUs: us(atMs),
  request: requestAt(atMs, changes),
});
const called = (atMs: number, call: CallPlan): SimFact => ({ kind: "call", atUs: us(atMs), process: 0, call });
const done = (
  atMs: number,
  call: CallPlan,
  error?: string,
  { status = 200, retryAfterMs }: { readonly status?: number; readonly retryAfterMs?: number } = {},
): SimFact => ({
  kind: "done",
  atUs: us(atMs),
  process: 0,
  call,
  status: error === undefined ? status : undefined,
  error,
  retryAfterMs,
  isFinal: true,
});
const eventFact = (atMs: number, event: object): SimFact => ({
  kind: "event",
  atUs: us(atMs),
  process: 0,
  event: event as HubEvent,
});
const changed = (atMs: number, old: string, state: string, host = HOST) =>
  eventFact(atMs, {
    event_type: "breaker_state_change",
    host,
    role: "metadata",
    old,
    new: state,
    reset_timeout_s: plainPlan().breakers.resetS,
  });
const granted = (atMs: number) =>
  eventFact(atMs, { event_type: "ratelimit.acquire", key: HOST, role: "metadata", outcome: "granted" });
const head = (atMs: number, retryAfterMs: number | undefined, request = requestAt(atMs)): SimFact => ({
  kind: "head",
  atUs: us(atMs),
  request,
  status: 429,
  retryAfterMs,
  freshUntilUs: undefined,
  usedCredits: undefined,
});
/** A request of a partition that has circuits and cooldowns of its own. */
const ofPartition = (atMs: number, partition: string) =>
  requestAt(atMs, { breakerUnit: partitionName(HOST, partition) });
/** A request of a partition that has limits of its own. */
const inPartition = (atMs: number, partition: string) => requestAt(atMs, { key: partitionName(HOST, partition) });
const ofPartitions = (...partitions: readonly string[]) =>
  partitions.map((partition, index) => dispatched(inPartition(100 * index, partition)));
const operated = (atMs: number, openS: number): SimFact => ({
  ...{ kind: "fault", atUs: us(atMs), isOver: true },
  fault: { kind: "operator", atMs, process: 0, host: HOST, openS },
});
const cooled = eventFact(0, { event_type: "breaker_cooldown_set", host: HOST, until: 1, reason: "retry-after" });
const [trial, second, third] = [requestAt(10), requestAt(20), requestAt(21)];
const answeredAt = (atMs: number, request: WireRequest, status: number): SimFact => ({
  ...{ kind: "head", atUs: us(atMs), request, status, retryAfterMs: undefined, freshUntilUs: undefined },
  usedCredits: undefined,
});
const dispatched = (request: WireRequest): SimFact => ({ kind: "dispatched", atUs: request.dispatchedUs, request });
const connecting = requestAt(10, { call: plainCall({ id: 7 }), writtenUs: undefined });
const writtenLate: SimFact = { kind: "written", atUs: us(15), request: connecting };
const storeLost = { kind: "store-loss", atMs: 1, lostMs: 50 } as const;
const hurried = plainCall({ id: 8, deadlineMs: 50 });
const joined = requestAt(10, { call: hurried, writtenUs: undefined });
const stalled: SimFact = {
  ...{ kind: "fault", atUs: us(10), fault: { kind: "stall", atMs: 10, process: 0, ms: 40 }, isOver: false },
};
const snapshot = (atMs: number, isLast: boolean, changes: object = {}): SimFact => ({
  kind: "snapshot",
  atUs: us(atMs),
  process: 0,
  isLast,
  calls: 0,
  inFlight: 0,
  waiting: 0,
  timers: 0,
  keys: [],
  ...changes,
});

/** Dispatched and written at one instant. */
const sentAlone = (atMs: number): readonly SimFact[] => {
  const request = requestAt(atMs);
  const atUs = us(atMs);
  return [
    { kind: "dispatched", atUs, request },
    { kind: "written", atUs, request },
  ];
};
const away = eventFact(0, { event_type: "store_away", processes: 2 });
const [early, late] = [plainCall({ id: 1 }), plainCall({ id: 2 })];
const bounded = plainCall({ id: 3, maxWaitMs: 100 });
const old = requestAt(1);
const fresh = (untilMs: number): readonly SimFact[] => {
  const request = requestAt(0, { call: plainCall({ id: 0, page: 9 }) });
  const answer = {
    kind: "head",
    atUs: 0,
    request,
    status: 200,
    retryAfterMs: undefined,
    freshUntilUs: us(untilMs),
    usedCredits: undefined,
  } as const;
  return [answer, { kind: "ended", atUs: us(1), request, how: "complete" }];
};
const again = plainCall({ id: 5, page: 9 });
const { breakers: plainBreakers } = plainPlan();
const slowPlan = plainPlan({
  breakers: {
    ...plainBreakers,
    rolling: { threshold: 5, windowS: 2, cooldownS: 1 },
    slowCalls: { ms: 100, share: 0.5, minCalls: 3 },
  },
});
/** A request and its answer after `ms`. */
const answeredIn = (atMs: number, ms: number): readonly SimFact[] => {
  const request = requestAt(atMs);
  return [dispatched(request), answeredAt(atMs + ms, request, 200)];
};
const cooledBySlowCalls = (atMs: number) =>
  eventFact(atMs, { event_type: "breaker_cooldown_set", host: HOST, until: 1, reason: "slow-calls" });
const bare = plainPlan({ calls: [early, late] });
const [plainHost] = bare.hosts;
const hostWith = (changes: Partial<HostPlan>): readonly HostPlan[] => [{ ...(plainHost as HostPlan), ...changes }];
const wide = { rates: [{ limit: 2, windowMs: 1000 }], maxDelayMs: 200, maxConcurrent: 100, countsHead: true };
/** Only rates delay a call. */
const calm = plainPlan({ maxInFlight: 500, hosts: hostWith({ roleLimits: { metadata: wide } }) });
const withCredits = plainPlan({
  hosts: hostWith({ credits: { rates: [{ limit: 10, windowMs: 1000 }], total: [], usual: 1, isSettled: true } }),
});
const withTotal = plainPlan({ startsWithTotals: false, hosts: hostWith({ total: [{ limit: 1, windowMs: 1000 }] }) });
const waiting = plainPlan({ store: { whenAway: "wait", delayMs: 0, jitterMs: 0 } });
/** Dispatched and written, with credits that its response settles after 10 ms. */
const withCost = (atMs: number, credits: number, usedCredits: number): readonly SimFact[] => {
  const request = requestAt(atMs, { credits, usedCredits });
  return [dispatched(request), { ...(answeredAt(atMs + 10, request, 200) as ResponseFact), usedCredits }];
};
const reloaded = (atMs: number, hasTotals: boolean, isDone: boolean, isPartitioned = true): SimFact => ({
  ...{ kind: "reloaded", atUs: us(atMs), process: 0, factor: 1, hasTotals, isPartitioned, isDone },
});
const refusedAt = (atMs: number, call: CallPlan, retryAfterMs: number) =>
  done(atMs, call, "DOCSTOKG_RATE_LIMITED", { retryAfterMs });
const patient = plainCall({ id: 6, maxWaitMs: 900 });
const twoBursts = [
  head(100, undefined, requestAt(10)),
  head(301, undefined, requestAt(210)),
  changed(301, "closed", "open"),
];
const openedAgain = changed(2400, "closed", "open");
const atLimit = [...sentAlone(0), ...sentAlone(10)];

const cases: readonly Case[] = [
  {
    law: resumesSlowly,
    violating: [cooled, dispatched(trial), dispatched(second)],
    valid: [cooled, dispatched(trial), answeredAt(15, trial, 404), dispatched(second), dispatched(third)],
  },
  {
    law: resumesSlowly,
    violating: [cooled, dispatched(trial), answeredAt(15, trial, 503), dispatched(second), dispatched(third)],
    valid: [dispatched(trial), dispatched(second), dispatched(third)],
  },
  {
    // The caller has left while its request was connecting; a call that was coalesced with it needs the answer.
    law: resumesSlowly,
    violating: [cooled, dispatched(connecting), done(12, connecting.call), writtenLate, dispatched(second)],
    valid: [cooled, dispatched(connecting), done(12, connecting.call), dispatched(second)],
  },
  {
    law: resumesSlowly,
    violating: [
      ...[cooled, dispatched(connecting), done(12, connecting.call), answeredAt(18, connecting, 200)],
      ...[dispatched(second), dispatched(third)],
    ],
    valid: [
      ...[cooled, dispatched(connecting), done(12, connecting.call), writtenLate, answeredAt(18, connecting, 200)],
      ...[dispatched(second), dispatched(third)],
    ],
  },
  { law: anyWindowOfProcess, violating: [0, 500, 1024].map(written), valid: [0, 500, 1025].map(written) },
  { law: anyWindowAtServer, violating: [0, 500, 999].map(arrived), valid: [0, 500, 1000].map(arrived) },
  {
    law: share,
    violating: [away, ...[500, 900].flatMap(sentAlone)],
    valid: [away, ...[500, 1525].flatMap(sentAlone)],
  },
  {
    law: noRejection,
    violating: [{ kind: "rejected", atUs: 0, request: requestAt(0), by: "metadata 2/1000ms" }],
    valid: [arrived(0)],
  },
  { law: conservation, violating: [granted(0), sent(0), sent(1)], valid: [granted(0), sent(0), granted(1), sent(1)] },
  { law: conservation, violating: [snapshot(9, true, { inFlight: 1 })], valid: [snapshot(9, true)] },
  {
    law: conservation,
    violating: [snapshot(9, true, { keys: [{ host: HOST, role: "metadata", used: 1, inFlight: 0 }] })],
    valid: [snapshot(9, true, { keys: [{ host: HOST, role: "metadata", used: 0, inFlight: 0 }] })],
  },
  {
    law: conservation,
    violating: [{ kind: "store-snapshot", atUs: 0, pending: 1 }],
    valid: [{ kind: "store-snapshot", atUs: 0, pending: 0 }],
  },
  {
    law: fewInFlight,
    violating: [sent(1), sent(2), sent(3)],
    valid: [sent(2), { kind: "ended", atUs: us(3), request: old, how: "complete" }, sent(4)],
  },
  {
    // Two slots: requests of all partitions that are in flight count together after they were joined.
    law: fewInFlight,
    violating: [...ofPartitions("a", "b"), reloaded(500, true, true, false), dispatched(inPartition(900, "c"))],
    valid: [...ofPartitions("a", "b"), reloaded(500, true, true), dispatched(inPartition(900, "c"))],
  },
  { law: unobservableEviction, violating: [written(0), snapshot(500, false)], valid: [written(0)] },
  { law: noSendInCooldown, violating: [head(0, 1000), sent(999)], valid: [head(0, 1000), sent(1000)] },
  {
    law: noSendInCooldown,
    violating: [head(0, 60_000), sent(4999)],
    valid: [head(0, 60_000), sent(5000)],
  },
  {
    // Each partition has cooldowns of its own.
    law: noSendInCooldown,
    violating: [head(0, 1000, ofPartition(0, "a")), dispatched(ofPartition(500, "a"))],
    valid: [head(0, 1000, ofPartition(0, "a")), dispatched(ofPartition(500, "b")), sent(600)],
  },
  {
    // An order for the host applies to its partitions.
    law: noSendInCooldown,
    violating: [operated(0, 1), dispatched(ofPartition(500, "a"))],
    valid: [operated(0, 1), head(1, 1000, ofPartition(1, "a")), operated(2, 0), dispatched(ofPartition(500, "a"))],
  },
  {
    law: burstsCountOnce,
    violating: [
      answeredAt(100, ofPartition(10, "a"), 500),
      answeredAt(301, ofPartition(210, "b"), 500),
      changed(301, "closed", "open", partitionName(HOST, "b")),
    ],
    valid: [
      answeredAt(100, ofPartition(10, "b"), 500),
      answeredAt(301, ofPartition(210, "b"), 500),
      changed(301, "closed", "open", partitionName(HOST, "b")),
    ],
  },
  {
    law: noSendWhileOpen,
    violating: [changed(0, "closed", "open"), changed(1500, "open", "half_open"), sent(1999)],
    valid: [changed(0, "closed", "open"), changed(2000, "open", "half_open"), sent(2000)],
  },
  {
    law: fewProbes,
    violating: [changed(0, "open", "half_open"), sent(1), sent(2)],
    valid: [changed(0, "open", "half_open"), sent(1)],
  },
  {
    law: noStaleResult,
    touched: [old],
    violating: [
      { kind: "dispatched", atUs: us(10_000), request: old },
      changed(11_000, "closed", "open"),
      changed(13_000, "open", "half_open"),
      changed(14_000, "half_open", "closed"),
    ],
    valid: [
      { kind: "dispatched", atUs: us(10_000), request: old },
      changed(11_000, "closed", "open"),
      changed(13_000, "open", "half_open"),
    ],
  },
  {
    // The call of a request has ended, and another one that has joined it ends it at the deadline that they share.
    law: noStaleResult,
    violating: [dispatched(connecting), done(55, connecting.call, "AbortError"), changed(61, "closed", "open")],
    valid: [dispatched(joined), done(60, hurried, "DOCSTOKG_DEADLINE"), changed(61, "closed", "open")],
  },
  {
    // The store counts failures of all processes, so that no result arrives when the circuit opens: one must have failed.
    law: noStaleResult,
    plan: waiting,
    violating: [dispatched(trial), answeredAt(15, trial, 200), changed(100, "closed", "open")],
    valid: [dispatched(trial), answeredAt(15, trial, 503), changed(100, "closed", "open")],
  },
  {
    // Each process may open a shared circuit once for the same answers. Opening it again takes new ones.
    law: burstsCountOnce,
    plan: waiting,
    violating: [...twoBursts, changed(2301, "open", "half_open"), changed(2302, "half_open", "closed"), openedAgain],
    valid: [...twoBursts, { ...changed(310, "closed", "open"), process: 1 } as SimFact],
  },
  {
    // Two of three calls took more than 100 ms: at least half, of at least three.
    law: slowCallsCoolDown,
    plan: slowPlan,
    violating: [...answeredIn(0, 200), ...answeredIn(300, 50), ...answeredIn(400, 200), snapshot(700, false)],
    valid: [...answeredIn(0, 200), ...answeredIn(300, 50), ...answeredIn(400, 200), cooledBySlowCalls(600)],
  },
  {
    law: slowCallsCoolDown,
    plan: slowPlan,
    violating: [...answeredIn(0, 200), ...answeredIn(300, 50), ...answeredIn(400, 50), cooledBySlowCalls(450)],
    // The first call has left the window of 2 s.
    valid: [...answeredIn(0, 200), ...answeredIn(2300, 50), ...answeredIn(2400, 200), snapshot(2700, false)],
  },
  {
    // fail_max is 2: two throttles of one burst are not enough, two in a row are.
    law: burstsCountOnce,
    violating: [
      head(100, undefined, requestAt(10)),
      head(101, undefined, requestAt(11)),
      changed(101, "closed", "open"),
    ],
    valid: [head(100, undefined, requestAt(10)), head(301, undefined, requestAt(210)), changed(301, "closed", "open")],
  },
  {
    law: boundedWait,
    violating: [called(0, bounded), done(150, bounded, "DOCSTOKG_RATE_LIMITED")],
    valid: [called(0, bounded), done(110, bounded, "DOCSTOKG_RATE_LIMITED")],
  },
  {
    law: fairness,
    plan: bare,
    violating: [called(0, early), called(1, late), sent(2, { call: late }), sent(3, { call: early })],
    valid: [called(0, early), called(1, late), sent(2, { call: early }), sent(3, { call: late })],
  },
  {
    law: boundedWait,
    plan: calm,
    violating: [called(0, early), sent(300, { call: early })],
    valid: [called(0, early), sent(250, { call: early })],
  },
  {
    law: noExhaustedBound,
    plan: calm,
    violating: [called(0, patient), refusedAt(900, patient, 100)],
    valid: [called(0, patient), called(500, late), refusedAt(500, patient, 500)],
  },
  {
    law: explainedRefusals,
    violating: [eventFact(0, { event_type: "http_request", error: "DOCSTOKG_BUSY", host: HOST, role: "metadata" })],
    valid: [
      eventFact(0, { event_type: "http_request", error: "DOCSTOKG_BUSY", decided_by: "max_concurrent 1 (file:1)" }),
      eventFact(0, { event_type: "http_request", error: "ECONNRESET" }),
    ],
  },
  {
    // Two were sent at 0 and 10 ms: the next one fits at 1025 ms.
    law: trueEstimates,
    plan: calm,
    violating: [...atLimit, called(20, early), refusedAt(20, early, 1004)],
    valid: [...atLimit, called(20, early), refusedAt(20, early, 1005)],
  },
  {
    law: trueEstimates,
    plan: calm,
    violating: [...atLimit, called(20, early), refusedAt(20, early, 60_000)],
    valid: [...atLimit, called(20, early), refusedAt(20, early, 1030)],
  },
  {
    law: trueEstimates,
    plan: calm,
    violating: [called(0, patient), refusedAt(100, patient, 700)],
    valid: [called(0, patient), refusedAt(100, patient, 800)],
  },
  {
    law: costsWithinWindows,
    plan: withCredits,
    violating: [...withCost(0, 6, 6), ...withCost(500, 5, 5)],
    valid: [...withCost(0, 6, 6), ...withCost(500, 4, 4), ...withCost(1025, 6, 6)],
  },
  {
    // A response that says less returns the rest; one that says more counts from then on.
    law: costsWithinWindows,
    plan: withCredits,
    violating: [...withCost(0, 2, 9), ...withCost(500, 2, 2)],
    valid: [...withCost(0, 9, 2), ...withCost(500, 8, 8)],
  },
  {
    law: costsWithinWindows,
    plan: withCredits,
    violating: [...withCost(0, 2, 12), ...withCost(1030, 1, 1)],
    valid: [...withCost(0, 2, 12), ...withCost(1035, 1, 1)],
  },
  {
    // Two units in a second: those of all partitions count together after they were joined.
    law: keepsHistory,
    violating: [...ofPartitions("a", "b"), reloaded(500, true, true, false), dispatched(inPartition(900, "c"))],
    valid: [...ofPartitions("a", "b"), reloaded(500, true, true), dispatched(inPartition(900, "c"))],
  },
  {
    law: keepsHistory,
    plan: withTotal,
    violating: [sent(0), reloaded(500, true, false), reloaded(500, true, true), sent(900)],
    valid: [sent(0), reloaded(500, false, false), reloaded(500, false, true), sent(900)],
  },
  {
    law: nothingWithoutStore,
    plan: waiting,
    violating: [away, sent(500)],
    valid: [away, eventFact(400, { event_type: "store_back" }), sent(500)],
  },
  { law: liveness, violating: [done(9, early, "DOCSTOKG_BREAKER_OPEN")], valid: [done(9, early)] },
  {
    law: liveness,
    plan: plainPlan({ store: { whenAway: "refuse", delayMs: 0, jitterMs: 0 }, faults: [storeLost] }),
    violating: [done(9, early, "DOCSTOKG_BUSY")],
    valid: [done(9, early, "DOCSTOKG_RATE_LIMITED")],
  },
  { law: liveness, violating: [{ kind: "stuck", atUs: 0, message: "a hub does not close" }], valid: [] },
  {
    law: ownResponses,
    violating: [...fresh(5000), done(100, { ...again, partition: "a" })],
    valid: [...fresh(5000), done(100, again)],
  },
  {
    // Each partition has limits of its own.
    law: anyWindowOfProcess,
    plan: plainPlan({ hosts: hostWith({ isPerPartition: true }) }),
    violating: [0, 10, 20].map(atMs => ({ ...written(atMs), request: requestAt(atMs, { key: "a" }) }) as SimFact),
    valid: [0, 10, 20].map(atMs => ({ ...written(atMs), request: requestAt(atMs, { key: `${atMs > 5}` }) }) as SimFact),
  },
  {
    law: hitsCostNothing,
    violating: [...fresh(5000), called(100, again), sent(100, { call: again })],
    valid: [...fresh(5000), called(5000, again), sent(5000, { call: again })],
  },
  {
    law: hitsCostNothing,
    violating: [...fresh(5000), called(100, again), done(100, again, "DOCSTOKG_BREAKER_OPEN")],
    valid: [...fresh(5000), called(100, again), done(100, again)],
  },
  {
    law: fewAttempts,
    violating: [called(0, early), ...[1, 2, 3, 4, 5].map(atMs => sent(atMs))],
    valid: [called(0, early), ...[1, 2, 3, 4].map(atMs => sent(atMs))],
  },
  {
    law: fewAttempts,
    violating: [1, 2, 3, 4].map(atMs => eventFact(atMs, { event_type: "http_retry", host: HOST })),
    valid: [1, 2, 3].map(atMs => eventFact(atMs, { event_type: "http_retry", host: HOST })),
  },
  {
    law: noLateAttempt,
    violating: [called(0, early), done(1, early), sent(2, { call: early })],
    valid: [called(0, early), sent(1, { call: early }), done(2, early)],
  },
  {
    // Also after a stall of the event loop, when the timer of the deadline is late.
    law: noLateAttempt,
    violating: [called(0, hurried), stalled, sent(51, { call: hurried })],
    valid: [called(0, hurried), stalled, sent(50, { call: hurried })],
  },
  {
    law: noLateAttempt,
    violating: [sent(1, { attempt: 5 })],
    valid: [sent(1, { attempt: 4 })],
  },
];

for (const [index, { law, plan = plainPlan(), violating, valid, touched }] of cases.entries()) {
  test(`${law.title}: the law detects a violation and accepts valid facts (${index})`, () => {
    let occasions = 0;
    assert.equal(violationsOf(law, plan, violating, touched, () => (occasions += 1)).length > 0, true);
    // A violation is an occasion on which the law applied.
    assert.equal(occasions > 0, true);
    assert.deepEqual(violationsOf(law, plan, valid, touched), []);
  });
}

test("every law has a case that violates it", () => {
  const shown = new Set(cases.map(({ law }) => law.title));
  assert.deepEqual(
    ALL_LAWS.map(({ title }) => title).filter(title => !shown.has(title)),
    [],
  );
});

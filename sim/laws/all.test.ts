import assert from "node:assert/strict";
import { test } from "node:test";
import type { HubEvent } from "../../src/http/hub-options.ts";
import { HOST, judged, plainCall, plainPlan, requestAt } from "../../test/sim/kit.ts";
import type { SimFact, WireRequest } from "../facts.ts";
import type { CallPlan, Plan } from "../plan.ts";
import { ALL_LAWS } from "./all.ts";
import { anyWindowAtServer, anyWindowOfProcess } from "./any-window.ts";
import { boundedWait, fairness } from "./bounded-wait.ts";
import { hitsCostNothing } from "./cache-hits.ts";
import { fewProbes, noSendWhileOpen, noStaleResult } from "./circuits.ts";
import { conservation, fewInFlight, unobservableEviction } from "./conservation.ts";
import { noSendInCooldown } from "./cooldowns.ts";
import type { LawMaker } from "./law.ts";
import { liveness } from "./liveness.ts";
import { noRejection } from "./rejection.ts";
import { fewAttempts, noLateAttempt } from "./retries.ts";
import { share } from "./share.ts";

// A law that cannot fail is none: each is shown facts that break it, and the same facts without the fault.

interface Case {
  readonly law: LawMaker;
  readonly plan?: Plan;
  readonly broken: readonly SimFact[];
  readonly kept: readonly SimFact[];
  readonly touched?: readonly WireRequest[];
}

const us = (atMs: number) => atMs * 1000;
const written = (atMs: number): SimFact => ({ kind: "written", atUs: us(atMs), sending: requestAt(atMs) });
const arrived = (atMs: number): SimFact => ({ kind: "arrived", atUs: us(atMs), sending: requestAt(atMs) });
const sent = (atMs: number, changes: Partial<WireRequest> = {}): SimFact => ({
  kind: "dispatched",
  atUs: us(atMs),
  sending: requestAt(atMs, changes),
});
const called = (atMs: number, call: CallPlan): SimFact => ({ kind: "call", atUs: us(atMs), process: 0, call });
const done = (atMs: number, call: CallPlan, error?: string, status = 200): SimFact => ({
  kind: "done",
  atUs: us(atMs),
  process: 0,
  call,
  status: error === undefined ? status : undefined,
  error,
  isFinal: true,
});
const eventFact = (atMs: number, event: object): SimFact => ({
  kind: "event",
  atUs: us(atMs),
  process: 0,
  event: event as HubEvent,
});
const changed = (atMs: number, old: string, state: string) =>
  eventFact(atMs, {
    event_type: "breaker_state_change",
    host: HOST,
    role: "metadata",
    old,
    new: state,
    reset_timeout_s: plainPlan().breakers.resetS,
  });
const granted = (atMs: number) =>
  eventFact(atMs, { event_type: "ratelimit.acquire", key: HOST, role: "metadata", outcome: "granted" });
const head = (atMs: number, retryAfterMs: number | undefined, sending = requestAt(atMs)): SimFact => ({
  kind: "head",
  atUs: us(atMs),
  sending,
  status: 429,
  retryAfterMs,
  freshUntilUs: undefined,
});
const look = (atMs: number, isLast: boolean, changes: object = {}): SimFact => ({
  kind: "look",
  atUs: us(atMs),
  process: 0,
  isLast,
  calls: 0,
  inFlight: 0,
  waiting: 0,
  timers: 0,
  lanes: [],
  ...changes,
});

/** Let go and written, with nobody else. */
const alone = (atMs: number): readonly SimFact[] => {
  const sending = requestAt(atMs);
  const atUs = us(atMs);
  return [
    { kind: "dispatched", atUs, sending },
    { kind: "written", atUs, sending },
  ];
};
const away = eventFact(0, { event_type: "store_away", processes: 2 });
const [early, late] = [plainCall({ id: 1 }), plainCall({ id: 2 })];
const [bounded, unbounded] = [plainCall({ id: 3, maxWaitMs: 100 }), plainCall({ id: 4 })];
const old = requestAt(1);
const fresh = (untilMs: number): readonly SimFact[] => {
  const sending = requestAt(0, { call: plainCall({ id: 0, page: 9 }) });
  const answer = {
    kind: "head",
    atUs: 0,
    sending,
    status: 200,
    retryAfterMs: undefined,
    freshUntilUs: us(untilMs),
  } as const;
  return [answer, { kind: "ended", atUs: us(1), sending, how: "complete" }];
};
const again = plainCall({ id: 5, page: 9 });
const bare = plainPlan({ calls: [early, late] });

const cases: readonly Case[] = [
  { law: anyWindowOfProcess, broken: [0, 500, 1024].map(written), kept: [0, 500, 1025].map(written) },
  { law: anyWindowAtServer, broken: [0, 500, 999].map(arrived), kept: [0, 500, 1000].map(arrived) },
  {
    law: share,
    broken: [away, ...[500, 900].flatMap(alone)],
    kept: [away, ...[500, 1525].flatMap(alone)],
  },
  {
    law: noRejection,
    broken: [{ kind: "rejected", atUs: 0, sending: requestAt(0), by: "metadata 2/1000ms" }],
    kept: [arrived(0)],
  },
  { law: conservation, broken: [granted(0), sent(0), sent(1)], kept: [granted(0), sent(0), granted(1), sent(1)] },
  { law: conservation, broken: [look(9, true, { inFlight: 1 })], kept: [look(9, true)] },
  {
    law: conservation,
    broken: [look(9, true, { lanes: [{ host: HOST, role: "metadata", used: 1, inFlight: 0 }] })],
    kept: [look(9, true, { lanes: [{ host: HOST, role: "metadata", used: 0, inFlight: 0 }] })],
  },
  {
    law: conservation,
    broken: [{ kind: "store-look", atUs: 0, pending: 1 }],
    kept: [{ kind: "store-look", atUs: 0, pending: 0 }],
  },
  {
    law: fewInFlight,
    broken: [sent(1), sent(2), sent(3)],
    kept: [sent(2), { kind: "ended", atUs: us(3), sending: old, how: "complete" }, sent(4)],
  },
  { law: unobservableEviction, broken: [written(0), look(500, false)], kept: [written(0)] },
  { law: noSendInCooldown, broken: [head(0, 1000), sent(999)], kept: [head(0, 1000), sent(1000)] },
  {
    law: noSendInCooldown,
    broken: [head(0, 60_000), sent(4999)],
    kept: [head(0, 60_000), sent(5000)],
  },
  {
    law: noSendWhileOpen,
    broken: [changed(0, "closed", "open"), changed(1500, "open", "half_open"), sent(1999)],
    kept: [changed(0, "closed", "open"), changed(2000, "open", "half_open"), sent(2000)],
  },
  {
    law: fewProbes,
    broken: [changed(0, "open", "half_open"), sent(1), sent(2)],
    kept: [changed(0, "open", "half_open"), sent(1)],
  },
  {
    law: noStaleResult,
    touched: [old],
    broken: [
      { kind: "dispatched", atUs: us(10_000), sending: old },
      changed(11_000, "closed", "open"),
      changed(13_000, "open", "half_open"),
      changed(14_000, "half_open", "closed"),
    ],
    kept: [
      { kind: "dispatched", atUs: us(10_000), sending: old },
      changed(11_000, "closed", "open"),
      changed(13_000, "open", "half_open"),
    ],
  },
  {
    law: boundedWait,
    broken: [called(0, bounded), done(150, bounded, "DOCSTOKG_RATE_LIMITED")],
    kept: [called(0, bounded), done(110, bounded, "DOCSTOKG_RATE_LIMITED")],
  },
  {
    law: boundedWait,
    broken: [called(0, unbounded), done(100, unbounded, "DOCSTOKG_RATE_LIMITED")],
    kept: [called(0, unbounded), done(0, unbounded, "DOCSTOKG_RATE_LIMITED")],
  },
  {
    law: fairness,
    plan: bare,
    broken: [called(0, early), called(1, late), sent(2, { call: late })],
    kept: [called(0, early), called(1, late), sent(2, { call: early }), sent(3, { call: late })],
  },
  { law: liveness, broken: [done(9, early, "DOCSTOKG_BREAKER_OPEN")], kept: [done(9, early)] },
  { law: liveness, broken: [{ kind: "stuck", atUs: 0, message: "a hub does not close" }], kept: [] },
  {
    law: hitsCostNothing,
    broken: [...fresh(5000), called(100, again), sent(100, { call: again })],
    kept: [...fresh(5000), called(5000, again), sent(5000, { call: again })],
  },
  {
    law: hitsCostNothing,
    broken: [...fresh(5000), called(100, again), done(100, again, "DOCSTOKG_BREAKER_OPEN")],
    kept: [...fresh(5000), called(100, again), done(100, again)],
  },
  {
    law: fewAttempts,
    broken: [called(0, early), ...[1, 2, 3, 4, 5].map(atMs => sent(atMs))],
    kept: [called(0, early), ...[1, 2, 3, 4].map(atMs => sent(atMs))],
  },
  {
    law: fewAttempts,
    broken: [1, 2, 3, 4].map(atMs => eventFact(atMs, { event_type: "http_retry", host: HOST })),
    kept: [1, 2, 3].map(atMs => eventFact(atMs, { event_type: "http_retry", host: HOST })),
  },
  {
    law: noLateAttempt,
    broken: [called(0, early), done(1, early), sent(2, { call: early })],
    kept: [called(0, early), sent(1, { call: early }), done(2, early)],
  },
  {
    law: noLateAttempt,
    broken: [sent(1, { attempt: 5 })],
    kept: [sent(1, { attempt: 4 })],
  },
];

for (const [index, { law, plan = plainPlan(), broken, kept, touched }] of cases.entries()) {
  test(`${law.title}: the law can be broken, and is not by less (${index})`, () => {
    assert.equal(judged(law, plan, broken, touched).length > 0, true);
    assert.deepEqual(judged(law, plan, kept, touched), []);
  });
}

test("every law is shown to be able to fail", () => {
  const shown = new Set(cases.map(({ law }) => law.title));
  assert.deepEqual(
    ALL_LAWS.map(({ title }) => title).filter(title => !shown.has(title)),
    [],
  );
});

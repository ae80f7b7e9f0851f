import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { outcomeOfResponse } from "../core/breaker/classify.ts";
import { RejectedError } from "../errors.ts";
import type { Budget } from "../limiter/budget.ts";
import { chargeOf } from "../limiter/charge.ts";
import type { Grant } from "../limiter/grant.ts";
import type { BreakersOptions } from "../policy/breaker-schema.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { BreakerRegistry } from "./breaker-registry.ts";
import { Gate } from "./gate.ts";

/**
 * Random schedules, checked against independent counts in this file: more than 20,000 schedules in one run.
 * fast-check prints the seed and path of a failing schedule; pass both to `fc.assert` to repeat it.
 */

function nth<T>(list: readonly T[], which: number): T | undefined {
  return list[which % Math.max(1, list.length)];
}

interface RecordedSend {
  readonly us: number;
  readonly units: number;
}

/** Law L1, counted independently: the largest number of units in any half-open interval of this length. */
function mostInAnyWindow(sends: readonly RecordedSend[], spanUs: number): number {
  let most = 0;
  for (const { us: from } of sends) {
    const inside = sends.filter(({ us }) => us >= from && us < from + spanUs);
    most = Math.max(
      most,
      inside.reduce((sum, { units }) => sum + units, 0),
    );
  }
  return most;
}

const windows = fc
  .array(fc.record({ limit: fc.integer({ min: 2, max: 6 }), ms: fc.integer({ min: 1, max: 400 }) }), {
    minLength: 1,
    maxLength: 3,
  })
  .map(list => list.map(({ limit, ms }) => ({ limit, ms, rate: `${limit}/${ms}ms` })));

// --- One key: requests are granted at the estimated instant ------------------------------------------------------

interface ScheduledArrival {
  readonly gapMs: number;
  readonly weight: number;
  readonly maxWaitMs: number;
}

const arrival: fc.Arbitrary<ScheduledArrival> = fc.record({
  gapMs: fc.oneof(
    { weight: 3, arbitrary: fc.constant(0) },
    fc.integer({ min: 0, max: 60 }),
    fc.integer({ min: 0, max: 900 }),
  ),
  weight: fc.constantFrom(1, 1, 1, 2),
  maxWaitMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 600 }), fc.constant(Number.POSITIVE_INFINITY)),
});

test("without disturbance a key admits exactly the requests that it can grant in time, each at the estimated instant", async () => {
  await fc.assert(
    fc.asyncProperty(windows, fc.array(arrival, { maxLength: 25, size: "max" }), async (shapes, arrivals) => {
      const time = new FakeTime();
      const rates = shapes.map(({ rate }) => rate);
      const gate = new Gate(limitPoliciesFrom({ defaults: { metadata: { rates, guard_ms: 0 } } }, "test"), time);
      const schedule: { us: number; units: number }[] = [];
      const granted: Promise<number>[] = [];
      for (const { gapMs, weight, maxWaitMs } of arrivals) {
        await time.advance(gapMs);
        const nowUs = time.monotonicUs();
        // Counted independently: not before the request ahead, at the first instant at which every window has capacity.
        const fits = (us: number) =>
          shapes.every(({ limit, ms }) => mostInAnyWindow([...schedule, { us, units: weight }], ms * 1000) <= limit);
        const leastUs = Math.max(nowUs, schedule.at(-1)?.us ?? 0);
        const candidates = [leastUs, ...schedule.flatMap(({ us }) => shapes.map(({ ms }) => us + ms * 1000))];
        const expectedUs = candidates.filter(us => us >= leastUs && fits(us)).sort((a, b) => a - b)[0] as number;
        try {
          const entered = gate.enter({ host: "a.example", role: "metadata", weight, maxWaitMs });
          assert.ok(expectedUs - nowUs <= maxWaitMs * 1000, "admitted although it cannot be served in time");
          schedule.push({ us: expectedUs, units: weight });
          granted.push(
            Promise.resolve(entered).then(grant => {
              grant.release();
              return time.monotonicUs();
            }),
          );
        } catch (error) {
          assert.ok(error instanceof RejectedError);
          assert.ok(expectedUs - nowUs > maxWaitMs * 1000, "refused although it could be served in time");
          assert.equal(error.retryAfterMs, Math.ceil((expectedUs - nowUs) / 1000));
        }
      }
      await time.advance(20_000);
      assert.deepEqual(
        await Promise.all(granted),
        schedule.map(({ us }) => us),
      );
      assert.equal(time.armedTimers, 0);
    }),
    { numRuns: 4000 },
  );
});

// --- Whole gates: roles, totals, groups, slots, aborts, stalls, early timers, changing pace ------------------------

type ScheduleStep =
  | {
      readonly do: "enter";
      readonly host: number;
      readonly role: number;
      readonly weight: number;
      readonly isHead: boolean;
      readonly maxWaitMs: number | undefined;
    }
  | { readonly do: "write" | "release" | "giveBack" | "abort"; readonly which: number }
  | { readonly do: "advance" | "stall"; readonly ms: number }
  | { readonly do: "throttled" | "hold" | "operator"; readonly host: number; readonly role: number }
  | {
      readonly do: "answer";
      readonly which: number;
      readonly status: number;
      readonly retryAfterMs: number | undefined;
    };

const HOSTS = ["a.example", "b.example", "c.example"] as const;
const ROLES = ["metadata", "artifact"] as const;
const which = fc.nat({ max: 30 });
const step: fc.Arbitrary<ScheduleStep> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("enter" as const),
      host: fc.nat({ max: 2 }),
      role: fc.nat({ max: 1 }),
      weight: fc.constantFrom(1, 1, 1, 2),
      isHead: fc.constantFrom(false, false, false, true),
      maxWaitMs: fc.constantFrom(undefined, 0, 50, 5000, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom("write" as const, "release" as const), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("giveBack" as const, "abort" as const), which }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constantFrom("advance" as const), ms: fc.integer({ min: 0, max: 300 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("stall" as const), ms: fc.integer({ min: 100, max: 3000 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom("throttled" as const, "hold" as const, "operator" as const),
      host: fc.nat({ max: 2 }),
      role: fc.nat({ max: 1 }),
    }),
  },
);

const answer: fc.Arbitrary<ScheduleStep> = fc.record({
  do: fc.constant("answer" as const),
  which,
  status: fc.constantFrom(200, 404, 429, 503, 503),
  retryAfterMs: fc.constantFrom(undefined, undefined, 70, 900),
});

const cap = fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined });
const scheduleShape = fc.record({
  metadata: windows,
  artifact: windows,
  total: fc.option(windows, { nil: undefined }),
  group: fc.option(windows, { nil: undefined }),
  roleCap: cap,
  totalCap: cap,
  maxInFlight: cap,
  guardMs: fc.constantFrom(0, 3),
  isSmooth: fc.constantFrom(false, false, true),
  hasBreakers: fc.boolean(),
  hasWeights: fc.boolean(),
  earlyUs: fc.array(fc.integer({ min: 0, max: 1000 }), { minLength: 1, maxLength: 5 }),
});
type ScheduleShape = typeof scheduleShape extends fc.Arbitrary<infer Shape> ? Shape : never;

function optionsOf({
  metadata,
  artifact,
  total,
  group,
  roleCap,
  totalCap,
  maxInFlight,
  guardMs,
  isSmooth,
}: ScheduleShape): RatelimitsOptions {
  const common = {
    guard_ms: guardMs,
    max_delay_ms: 400,
    count_head: false,
    shape: isSmooth ? "smooth" : "burst",
  } as const;
  const capped = roleCap === undefined ? {} : { max_concurrent: roleCap };
  const rates = (shapes: readonly { readonly rate: string }[]) => shapes.map(({ rate }) => rate);
  const totalLimits = {
    guard_ms: guardMs,
    ...(total === undefined ? {} : { rates: rates(total) }),
    ...(totalCap === undefined ? {} : { max_concurrent: totalCap }),
  };
  return {
    defaults: {
      metadata: { ...common, ...capped, rates: rates(metadata) },
      artifact: { ...common, ...capped, rates: rates(artifact) },
    },
    // a.example has a total, b and c share a group, so that every depth of the tree occurs.
    hosts: { "a.example": { total: totalLimits } },
    ...(group === undefined
      ? {}
      : {
          groups: { pair: { members: ["b.example", "c.example"], total: { guard_ms: guardMs, rates: rates(group) } } },
        }),
    aimd: { enabled: true, window_s: 1 },
    ...(maxInFlight === undefined ? {} : { global: { max_inflight: maxInFlight } }),
  };
}

const BREAKERS: BreakersOptions = {
  defaults: { fail_max: 2, reset_timeout_s: 0.3, retry_after_cap_s: 0.5 },
  advanced: { rolling_window: { window_s: 0.5, threshold_failures: 4, cooldown_s: 0.4 } },
};

test("no schedule of arrivals, aborts, stalls, early timers and changes of pace breaks a law", async () => {
  await fc.assert(
    fc.asyncProperty(
      scheduleShape,
      fc.array(fc.oneof({ weight: 8, arbitrary: step }, { weight: 2, arbitrary: answer }), {
        maxLength: 60,
        size: "max",
      }),
      async (shape, steps) => {
        let timers = 0;
        const time = new FakeTime({ earlyUs: () => shape.earlyUs[timers++ % shape.earlyUs.length] as number });
        const breakers = shape.hasBreakers ? new BreakerRegistry(BREAKERS, { time, random: () => 0.5 }) : undefined;
        const gate = new Gate(limitPoliciesFrom(optionsOf(shape), "test"), time, { breakers });
        const run = new ScheduleRun(shape, time, gate, breakers);
        for (const each of steps) {
          await run.step(each);
          run.check();
        }
        await run.drain();
        run.check();
      },
    ),
    { numRuns: 6000 },
  );
});

interface ScheduledCall {
  readonly host: string;
  readonly key: string;
  readonly units: number;
  readonly arrival: number;
  readonly abort: AbortController;
  grant: Grant | undefined;
  state: "waiting" | "granted" | "written" | "returned" | "refused" | "aborted";
  isReleased: boolean;
  isReported: boolean;
}

/** Runs one schedule, and counts independently what the laws are about. */
class ScheduleRun {
  readonly #shape: ScheduleShape;
  readonly #time: FakeTime;
  readonly #gate: Gate;
  readonly #calls: ScheduledCall[] = [];
  readonly #sends = new Map<string, RecordedSend[]>();
  readonly #lastServed = new Map<string, number>();
  readonly #breakers: BreakerRegistry | undefined;
  /** By host: no request may be granted before this. */
  readonly #cooledUntilUs = new Map<string, number>();

  constructor(shape: ScheduleShape, time: FakeTime, gate: Gate, breakers: BreakerRegistry | undefined) {
    this.#breakers = breakers;
    this.#shape = shape;
    this.#time = time;
    this.#gate = gate;
  }

  async step(step: ScheduleStep): Promise<void> {
    if (step.do === "enter") this.#enter(step);
    else if (step.do === "advance") await this.#time.advance(step.ms);
    else if (step.do === "stall") await this.#time.stall(step.ms);
    else if (step.do === "throttled") {
      for (let answers = 0; answers < 10; answers += 1)
        this.#gate.record(HOSTS[step.host] as string, ROLES[step.role] ?? "metadata", true);
    } else if (step.do === "hold") this.#gate.hold(HOSTS[step.host] as string, ROLES[step.role] ?? "metadata", 150);
    else if (step.do === "operator") this.#breakers?.open(HOSTS[step.host] as string, 0.25);
    else if (step.do === "answer") this.#answer(step);
    else if ("which" in step) this.#end(step.do, step.which);
    await this.#time.advance(0);
  }

  #enter({ host, role, weight, isHead, maxWaitMs }: Extract<ScheduleStep, { do: "enter" }>): void {
    const name = HOSTS[host] as string;
    const key = `${this.#shape.group !== undefined && host > 0 ? "pair" : name} ${ROLES[role]}`;
    const abort = new AbortController();
    const units = isHead ? 0 : this.#shape.hasWeights ? weight : 1;
    const call: ScheduledCall = {
      host: name,
      key,
      units,
      arrival: this.#calls.length,
      abort,
      grant: undefined,
      state: "waiting",
      isReleased: false,
      isReported: false,
    };
    this.#calls.push(call);
    const method = isHead ? "HEAD" : "GET";
    const { signal } = abort;
    try {
      const entered = this.#gate.enter({
        host: name,
        role: ROLES[role] ?? "metadata",
        weight: Math.max(1, units),
        method,
        maxWaitMs,
        signal,
      });
      if (entered instanceof Promise)
        entered.then(
          grant => this.#granted(call, grant),
          error => this.#failed(call, error),
        );
      else this.#granted(call, entered);
    } catch (error) {
      this.#failed(call, error);
    }
  }

  #granted(call: ScheduledCall, grant: Grant): void {
    assert.equal(call.state, "waiting");
    call.state = "granted";
    call.grant = grant;
    assert.ok(this.#time.monotonicUs() >= (this.#cooledUntilUs.get(call.host) ?? 0), "granted inside a cooldown");
    if (this.#breakers !== undefined) {
      for (const { state, probes, role } of this.#breakers.state(call.host).roles) {
        assert.notEqual(`${state} ${role === call.key.split(" ")[1]}`, "open true", "granted by an open circuit");
        assert.ok(probes <= (role === "artifact" ? 2 : 1), "too many probes");
      }
      // A request that waited for a circuit rejoins at the end of the queue, so the order is not checked.
      return;
    }
    // First in, first out, among requests that the windows count.
    if (call.units === 0) return;
    assert.ok(call.arrival > (this.#lastServed.get(call.key) ?? -1), "overtaken within its key");
    this.#lastServed.set(call.key, call.arrival);
  }

  #failed(call: ScheduledCall, error: unknown): void {
    if (call.abort.signal.aborted) assert.equal(error, call.abort.signal.reason);
    else assert.ok(error instanceof RejectedError, String(error));
    call.state = call.abort.signal.aborted ? "aborted" : "refused";
  }

  #answer({ which, status, retryAfterMs }: Extract<ScheduleStep, { do: "answer" }>): void {
    const call = nth(this.#held(), which);
    if (call?.grant === undefined || this.#breakers === undefined) return;
    const outcome = outcomeOfResponse({ status, retryAfterMs });
    call.grant.report({ outcome, status, retryAfterMs });
    const setsCooldown = outcome.kind === "failure" && outcome.throttled && retryAfterMs !== undefined;
    if (setsCooldown && !call.isReported) {
      const untilUs = this.#time.monotonicUs() + Math.min(500, retryAfterMs) * 1000;
      this.#cooledUntilUs.set(call.host, Math.max(untilUs, this.#cooledUntilUs.get(call.host) ?? 0));
    }
    call.isReported = true;
    this.#end("release", which);
  }

  #end(kind: "write" | "release" | "giveBack" | "abort", which: number): void {
    if (kind === "abort") {
      nth(
        this.#calls.filter(({ state }) => state === "waiting"),
        which,
      )?.abort.abort();
      return;
    }
    const call = nth(this.#held(), which);
    if (call?.grant === undefined) return;
    const wasWritten = call.state === "written";
    if (kind === "giveBack") call.grant.giveBack();
    else if (kind === "release") call.grant.release();
    else call.grant.written();
    if (kind !== "write") call.isReleased = true;
    if (kind === "giveBack" && !wasWritten) call.state = "returned";
    else if (!wasWritten) {
      call.state = "written";
      for (const budget of this.#budgetsOf(call)) {
        const sends = this.#sends.get(budget) ?? [];
        sends.push({ us: this.#time.monotonicUs(), units: call.units });
        this.#sends.set(budget, sends);
      }
    }
  }

  #held(): readonly ScheduledCall[] {
    return this.#calls.filter(({ grant, isReleased }) => grant !== undefined && !isReleased);
  }

  #budgetsOf({ key }: ScheduledCall): readonly string[] {
    const [owner = ""] = key.split(" ");
    return [key, owner];
  }

  check(): void {
    const nowUs = this.#time.monotonicUs();
    const { metadata, artifact, total, group, guardMs, roleCap, totalCap, maxInFlight } = this.#shape;
    const held = this.#held();
    assert.equal(this.#gate.inFlight, held.length);
    assert.equal(this.#gate.waiting, this.#calls.filter(({ state }) => state === "waiting").length);
    assert.ok(held.length <= (maxInFlight ?? Number.POSITIVE_INFINITY), "above the global ceiling");
    this.#checkReadyRequestsAreGranted(nowUs);
    const keys = new Set(this.#calls.map(({ key }) => key));
    for (const key of keys) {
      const [owner, role] = key.split(" ");
      this.#checkWindows(key, role === "metadata" ? metadata : artifact, guardMs, nowUs);
      const inKey = held.filter(call => call.key === key).length;
      assert.ok(inKey <= (roleCap ?? Number.POSITIVE_INFINITY), "above max_concurrent of a role");
      if (owner === "a.example") {
        this.#checkWindows(owner, total ?? [], guardMs, nowUs);
        const inHost = held.filter(call => call.key.startsWith("a.example")).length;
        assert.ok(inHost <= (totalCap ?? Number.POSITIVE_INFINITY), "above max_concurrent of a host");
      }
      if (owner === "pair") this.#checkWindows(owner, group ?? [], guardMs, nowUs);
    }
  }

  /** A request that is granted and not yet written may be written at any moment: it counts as written now. */
  #checkWindows(
    budget: string,
    shapes: readonly { readonly limit: number; readonly ms: number }[],
    guardMs: number,
    nowUs: number,
  ): void {
    const pending = this.#calls.filter(call => call.state === "granted" && this.#budgetsOf(call).includes(budget));
    const sends = [...(this.#sends.get(budget) ?? []), ...pending.map(({ units }) => ({ us: nowUs, units }))];
    for (const { limit, ms } of shapes) {
      assert.ok(mostInAnyWindow(sends, (ms + guardMs) * 1000) <= limit, `more than ${limit} in ${ms} ms at ${budget}`);
    }
  }

  /**
   * No request waits although every budget has admitted it for longer than a timer may be late.
   * Checked only with equal weights and without breakers: a heavy request keeps the turn until enough units are free.
   */
  #checkReadyRequestsAreGranted(nowUs: number): void {
    if (this.#shape.hasWeights || this.#breakers !== undefined) return;
    if (this.#gate.inFlight >= (this.#shape.maxInFlight ?? Number.POSITIVE_INFINITY)) return;
    for (const roleBudget of this.#gate.roleBudgets()) {
      const name = `${roleBudget.name.replace("service ", "")} ${roleBudget.role}`;
      for (const units of [0, 1]) {
        if (!this.#calls.some(call => call.state === "waiting" && call.key === name && call.units === units)) continue;
        let readyUs = 0;
        for (let at: Budget | undefined = roleBudget; at; at = at.above)
          readyUs = Math.max(readyUs, at.readyUs(chargeOf(units), nowUs));
        assert.ok(readyUs > nowUs - 1100, `${name} waits although it could have gone at ${readyUs}, now ${nowUs}`);
      }
    }
  }

  /** After the last fault every waiting request is granted, and no timer or slot is left behind. */
  async drain(): Promise<void> {
    for (let rounds = 0; rounds < 200 && this.#gate.waiting + this.#gate.inFlight > 0; rounds += 1) {
      for (const call of this.#calls) if (call.grant !== undefined && !call.isReleased) this.#end("release", 0);
      await this.#time.advance(this.#time.nextTimerMs ?? 1);
    }
    assert.equal(this.#gate.waiting, 0, "a request waits for ever");
    assert.equal(this.#gate.inFlight, 0);
    assert.equal(this.#time.armedTimers, 0, "a timer is left behind");
    for (const roleBudget of this.#gate.roleBudgets())
      assert.equal(roleBudget.log.pending, 0, "more units granted than written and returned");
    for (const { state } of this.#calls) assert.notEqual(state, "granted");
  }
}

/** Runs one trace on a `RateLimiter` with virtual time, and compares what it does with a plain list of sends. */
import { isDeepStrictEqual } from "node:util";
import { RateLimitExceeded } from "../../../src/errors.ts";
import { type RateGrant, RateLimiter } from "../../../src/limiter.ts";
import type { RatelimitsOptions } from "../../../src/policy/ratelimit-options.ts";
import { FakeTime } from "../../../src/testing/fake-time.ts";
import { budgetsOf, optionsOf, type PlainPolicy } from "./plain-policy.ts";
import { type Send, SendList } from "./send-list.ts";
import type { PlannedCall, TracePlan, TraceStep } from "./trace-plan.ts";

/** What one trace did; `violations` is empty if every law held. */
export interface TraceResult {
  readonly violations: readonly string[];
  readonly granted: number;
  readonly refused: number;
  /** Whether the refusal of the last call was compared with its grant. */
  readonly isCompared: boolean;
}

interface WaitingCall {
  readonly call: PlannedCall;
  readonly weight: number;
  /** Undefined: the costs of the policy. */
  readonly credits: number | undefined;
  readonly number: number;
  readonly arrivedUs: number;
  readonly boundMs: number;
  readonly abort: AbortController;
}

interface HeldGrant {
  readonly grant: RateGrant;
  readonly send: Send;
  readonly debts: Send[];
  /** The role budget that it was charged to. */
  readonly key: string;
  isReleased: boolean;
  /** A debt was settled whose budget is not known: what the request is charged since then is not known either. */
  hasLostDebt: boolean;
}

/** A timer fires up to a millisecond after its instant. */
const TIMER_US = 1000;

/** The part of a limiter that a trace uses. */
export type TracedLimiter = Pick<
  RateLimiter,
  "acquire" | "check" | "record429" | "recordSuccess" | "cooldownFor" | "reload" | "snapshot"
>;

/** `make` builds another limiter, to show that the laws notice a wrong one. */
export async function runTrace(
  plan: TracePlan,
  make: (limits: RatelimitsOptions, time: FakeTime) => TracedLimiter = (limits, time) =>
    new RateLimiter(limits, { time }),
): Promise<TraceResult> {
  const trace = new Trace(plan, make);
  for (const step of plan.steps) await trace.step(step);
  await trace.compareNames(plan.last);
  await trace.compareRefusal(plan.last);
  await trace.end();
  return trace;
}

class Trace implements TraceResult {
  readonly violations: string[] = [];
  granted = 0;
  refused = 0;
  isCompared = false;
  readonly #time = new FakeTime();
  readonly #limiter: TracedLimiter;
  readonly #isCalm: boolean;
  readonly #sends = new SendList();
  readonly #waiting = new Set<WaitingCall>();
  readonly #held: HeldGrant[] = [];
  #policy: PlainPolicy;
  #calls = 0;
  #stallEndUs = Number.NEGATIVE_INFINITY;
  /** A cap on slots makes waits longer than any bound of the policy. */
  #hasCaps = false;

  constructor({ policy, isCalm }: TracePlan, make: (limits: RatelimitsOptions, time: FakeTime) => TracedLimiter) {
    this.#policy = policy;
    this.#isCalm = isCalm;
    this.#hasCaps = policy.maxConcurrent !== undefined;
    this.#limiter = make(optionsOf(policy), this.#time);
  }

  async step(step: TraceStep): Promise<void> {
    const time = this.#time;
    if (step.do === "call") void this.#call(step.call);
    else if (step.do === "advance") await time.advance(step.ms);
    else if (step.do === "wall") time.stepWall(step.ms);
    else if (step.do === "answer") this.#limiter[step.isThrottled ? "record429" : "recordSuccess"](step.call);
    else if (step.do === "cooldown") this.#limiter.cooldownFor({ ...step.call, ms: step.ms });
    else if (step.do === "reload") this.#reload(step.policy);
    else if (step.do === "stall") {
      this.#stallEndUs = time.monotonicUs() + step.ms * 1000;
      await time.stall(step.ms);
    } else if (step.do === "abort") this.#abort(this.#nth([...this.#waiting], step.which));
    else this.#useGrant(step);
    // The grants and refusals that a step causes are recorded before the next step.
    await time.advance(0);
  }

  /** One estimate: `check`, the snapshot and a refusal name the same limit and the same time for the same call. */
  async compareNames(call: PlannedCall): Promise<void> {
    // A call behind requests without a slot waits for a time that is not known.
    if (this.#policy.maxConcurrent !== undefined) return;
    // With these bounds a lower bound of its start may admit it, and the queues refuse it in a microtask.
    await this.#compareRefusalWithin(call, waitMs => waitMs - 1);
    await this.#compareRefusalWithin(call, waitMs => Math.floor(waitMs / 2));
    const [key] = budgetsOf(this.#policy, call.host, call.role);
    const shown = this.#limiter.snapshot().keys.find(one => one.key === key.name && one.role === call.role);
    const usual = this.#limiter.check({ host: call.host, role: call.role });
    if (shown !== undefined && !isDeepStrictEqual(shown.constraint, usual?.constraint))
      this.violations.push(
        `names: check says ${JSON.stringify(usual?.constraint)}, snapshot ${JSON.stringify(shown.constraint)}`,
      );
  }

  /** `bound` is below the wait that `check` gives. */
  async #compareRefusalWithin(call: PlannedCall, bound: (waitMs: number) => number): Promise<void> {
    const { maxWaitMs: _, ...request } = this.#requestOf(call);
    const checked = this.#limiter.check(request);
    if (checked?.retryAfterMs === undefined || checked.retryAfterMs < 2) return;
    const refusal = await this.#refusalWithin(call, bound(checked.retryAfterMs));
    const told = { constraint: checked.constraint, retryAfterMs: checked.retryAfterMs };
    if (!(refusal instanceof RateLimitExceeded) || !isDeepStrictEqual(told, named(refusal)))
      this.violations.push(`names: check says ${JSON.stringify(told)}, acquire ${JSON.stringify(named(refusal))}`);
  }

  /** The refusal of a call with this bound, which arrives now; undefined if it waits. */
  async #refusalWithin(call: PlannedCall, maxWaitMs: number): Promise<unknown> {
    const abort = new AbortController();
    const waiting = this.#waiting.size;
    let ended: unknown;
    this.#limiter.acquire({ ...this.#requestOf(call), maxWaitMs, signal: abort.signal }).then(
      grant => grant.giveBack(),
      error => {
        ended = error;
      },
    );
    await this.#time.advance(0);
    const refusal = ended;
    if (refusal !== undefined && this.#waiting.size < waiting)
      this.violations.push("a call that was refused itself ended the wait of another one");
    abort.abort();
    await this.#time.advance(0);
    return refusal;
  }

  /** Law L4: a refusal says when the same call would really have started, if nothing else arrives. */
  async compareRefusal(call: PlannedCall): Promise<void> {
    const nowUs = this.#time.monotonicUs();
    let refusal: unknown;
    void this.#call({ ...call, maxWaitMs: 0 }).then(ended => {
      refusal = ended;
    });
    await this.#time.advance(0);
    if (!(refusal instanceof RateLimitExceeded) || this.#policy.maxConcurrent !== undefined) return;
    const startUs = this.#call({ ...call, maxWaitMs: Number.POSITIVE_INFINITY });
    let isOver = false;
    void startUs.finally(() => {
      isOver = true;
    });
    await this.#time.advance(0);
    while (!isOver && this.#time.nextTimerMs !== undefined) await this.#time.advance(this.#time.nextTimerMs);
    const waitedMs = (Number(await startUs) - nowUs) / 1000;
    this.isCompared = true;
    if (Math.ceil(waitedMs) !== refusal.retryAfterMs)
      this.violations.push(`retryAfterMs ${refusal.retryAfterMs}, but the call starts after ${waitedMs} ms`);
  }

  /** Law L5: nothing is left when every call has ended. */
  async end(): Promise<void> {
    while (this.#waiting.size > 0) {
      this.#abort([...this.#waiting].at(-1));
      // A call that was ahead of others may let them start.
      await this.#time.advance(0);
    }
    for (const held of this.#held) held.grant.release();
    await this.#time.advance(0);
    const { inFlight, waiting } = this.#limiter.snapshot();
    const left = { inFlight, waiting, timers: this.#time.armedTimers };
    if (Object.values(left).some(count => count > 0)) this.violations.push(`left at the end: ${JSON.stringify(left)}`);
  }

  /** Resolves when the call is granted, with the instant, or refused, with the error. */
  #call(planned: PlannedCall): Promise<unknown> {
    const policy = this.#policy;
    const request = this.#requestOf(planned);
    const call: WaitingCall = {
      call: planned,
      weight: request.weight,
      credits: request.costs?.credits,
      number: this.#calls,
      arrivedUs: this.#time.monotonicUs(),
      boundMs: planned.maxWaitMs ?? policy.maxDelayMs,
      abort: new AbortController(),
    };
    this.#calls += 1;
    const mustGrant = this.#isCalm && this.#waiting.size === 0 && this.#sends.hasCapacity(policy, this.#sendOf(call));
    this.#waiting.add(call);
    return this.#limiter.acquire({ ...request, signal: call.abort.signal }).then(
      grant => this.#granted(call, grant),
      error => this.#ended(call, error, mustGrant),
    );
  }

  #requestOf({ host, role, isHead, weight, credits, maxWaitMs }: PlannedCall) {
    const budgets = budgetsOf(this.#policy, host, role).map(({ budget }) => budget);
    const least = (amount: number, unit: "requests" | "credits") =>
      Math.min(amount, ...budgets.flatMap(budget => budget[unit].map(({ limit }) => limit)));
    return {
      host,
      role,
      weight: least(weight, "requests"),
      costs: credits === undefined ? undefined : { credits: least(credits, "credits") },
      method: isHead ? "HEAD" : "GET",
      maxWaitMs,
    };
  }

  #abort(call: WaitingCall | undefined): void {
    if (call === undefined) return;
    this.#waiting.delete(call);
    call.abort.abort(new Error("aborted"));
  }

  #granted(call: WaitingCall, grant: RateGrant): number {
    const { host, role } = call.call;
    const send = this.#sendOf(call);
    this.#waiting.delete(call);
    this.granted += 1;
    if (call.abort.signal.aborted) this.violations.push(`call ${call.number} was granted after its abort`);
    this.#sends.add(send);
    for (const window of this.#sends.exceeded(this.#policy, send)) this.violations.push(`L1: ${window}`);
    const key = this.#keyOf(call);
    for (const other of this.#waiting) {
      const isAhead = other.number < call.number && this.#keyOf(other) === key;
      if (isAhead && this.#isCounted(other) === this.#isCounted(call))
        this.violations.push(`FIFO: call ${call.number} was granted before call ${other.number} of ${key}`);
    }
    if (this.#isBounded(call) && send.us > call.arrivedUs + call.boundMs * 1000 + TIMER_US)
      this.violations.push(`L4: call ${call.number} was granted after ${(send.us - call.arrivedUs) / 1000} ms`);
    this.#held.push({
      grant,
      send,
      debts: [],
      key: budgetsOf(this.#policy, host, role)[0].name,
      isReleased: false,
      hasLostDebt: false,
    });
    return send.us;
  }

  #ended(call: WaitingCall, error: unknown, mustGrant: boolean): unknown {
    const nowUs = this.#time.monotonicUs();
    this.#waiting.delete(call);
    this.refused += 1;
    const latestUs = Math.max(call.arrivedUs + call.boundMs * 1000, this.#stallEndUs) + TIMER_US;
    if (this.#isBounded(call) && !call.abort.signal.aborted && nowUs > latestUs)
      this.violations.push(`L4: call ${call.number} was refused after ${(nowUs - call.arrivedUs) / 1000} ms`);
    if (mustGrant) this.violations.push(`call ${call.number} was refused although every window has capacity`);
    return error;
  }

  #useGrant(step: Extract<TraceStep, { which: number }>): void {
    const held = this.#nth(
      this.#held.filter(({ isReleased }) => !isReleased || step.do === "settle"),
      step.which,
    );
    if (held === undefined) return;
    const { grant, send, debts } = held;
    if (step.do === "release") grant.release();
    else if (step.do === "giveBack") {
      grant.giveBack();
      for (const one of [send, ...debts]) {
        one.units = 0;
        one.credits = 0;
      }
    } else if (step.do === "settle") this.#settle(held, step.credits);
    if (step.do !== "settle") held.isReleased = true;
  }

  #settle(held: HeldGrant, credits: number): void {
    const { grant, send, debts, key } = held;
    const { host, role } = send;
    const charged = send.credits + debts.reduce((sum, debt) => sum + debt.credits, 0);
    grant.settle({ credits });
    // A reload that routes the request elsewhere may have lost the budget that a debt belongs to.
    held.hasLostDebt ||= credits > charged && budgetsOf(this.#policy, host, role)[0].name !== key;
    if (charged === 0 || held.hasLostDebt) return;
    if (credits > charged)
      debts.push(this.#sends.add({ ...send, us: this.#time.monotonicUs(), units: 0, credits: credits - charged }));
    let returned = charged - credits;
    for (const one of [...debts.toReversed(), send]) {
      const less = Math.max(0, Math.min(returned, one.credits));
      one.credits -= less;
      returned -= less;
    }
  }

  #reload(policy: PlainPolicy): void {
    this.#limiter.reload(optionsOf(policy));
    this.#policy = policy;
    this.#hasCaps ||= policy.maxConcurrent !== undefined;
  }

  /** What the call uses by the policy of now. */
  #sendOf(call: WaitingCall): Send {
    const { host, role } = call.call;
    const { callCredits } = this.#policy;
    const isCounted = this.#isCounted(call);
    const countsCredits =
      isCounted && budgetsOf(this.#policy, host, role).some(({ budget }) => budget.credits.length > 0);
    return {
      us: this.#time.monotonicUs(),
      host,
      role,
      units: isCounted ? call.weight : 0,
      credits: countsCredits ? (call.credits ?? callCredits) : 0,
    };
  }

  /** The bound of the policy is for rates: it does not hold while slots are missing or the process is stalled. */
  #isBounded({ call, arrivedUs }: WaitingCall): boolean {
    return call.maxWaitMs !== undefined || !(this.#hasCaps || this.#stallEndUs > arrivedUs);
  }

  #isCounted({ call: { isHead } }: WaitingCall): boolean {
    return !isHead || this.#policy.countsHead;
  }

  #keyOf({ call: { host, role } }: WaitingCall): string {
    return budgetsOf(this.#policy, host, role)[0].name;
  }

  #nth<Item>(items: readonly Item[], which: number): Item | undefined {
    return items[which % Math.max(1, items.length)];
  }
}

/** What a refusal says; undefined if there is none. */
function named(refusal: unknown): object | undefined {
  if (!(refusal instanceof RateLimitExceeded)) return undefined;
  const { constraint, retryAfterMs } = refusal;
  return { constraint, retryAfterMs };
}

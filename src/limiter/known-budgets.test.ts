import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import { Gate } from "../gate/gate.ts";
import { type ImmediateRequest, type RateGrant, RateLimiter } from "../limiter.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { Grant } from "./grant.ts";
import { KnownBudgets } from "./known-budgets.ts";
import { RoleBudget } from "./role-budget.ts";

const HOSTS = Array.from({ length: 8 }, (_, index) => `h${index}.example`);

function limitsOf(rates: readonly string[]) {
  return { defaults: { metadata: { rates: [...rates], guard_ms: 0, max_delay_ms: 0 } } };
}

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("try" as const),
      host: fc.nat(7),
      weight: fc.integer({ min: 1, max: 2 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("advance" as const), ms: fc.constantFrom(1, 40, 100, 900) }) },
  fc.record({ kind: fc.constant("giveBack" as const), which: fc.nat(20) }),
  fc.record({ kind: fc.constant("cooldown" as const), host: fc.nat(7) }),
);

/** Steps after which units count that had left every window: a longer window, or a wider guard after a 429. */
const wideningStep = fc.oneof(
  fc.record({ kind: fc.constant("throttled" as const), host: fc.nat(7) }),
  fc.record({
    kind: fc.constant("reload" as const),
    rates: fc.constantFrom(["2/100ms"], ["3/SECOND"], ["2/100ms", "5/SECOND"]),
  }),
);

type StepOf<Arbitrary> = Arbitrary extends fc.Arbitrary<infer Value> ? Value : never;

/** One limiter for all keys, and beside it one limiter for each key, which forgets nothing. */
class TwoWays {
  readonly time = new FakeTime();
  readonly common = new RateLimiter(limitsOf(["2/100ms", "4/SECOND"]), { time: this.time });
  readonly alone = HOSTS.map(() => new RateLimiter(limitsOf(["2/100ms", "4/SECOND"]), { time: this.time }));
  readonly #grants: { readonly one: RateGrant; readonly other: RateGrant }[] = [];

  /** @param onTry is called before each request, and returns whether both ways try it */
  async apply(
    one: StepOf<typeof step | typeof wideningStep>,
    onTry: (common: RateLimiter, own: RateLimiter, asked: ImmediateRequest) => boolean,
  ) {
    const { common, alone } = this;
    if (one.kind === "advance") return this.time.advance(one.ms);
    if (one.kind === "reload") {
      for (const limiter of [common, ...alone]) limiter.reload(limitsOf(one.rates));
      return;
    }
    if (one.kind === "giveBack") {
      const [grant] = this.#grants.splice(one.which % Math.max(1, this.#grants.length), 1);
      grant?.one.giveBack();
      grant?.other.giveBack();
      return;
    }
    const request = { host: HOSTS[one.host] as string };
    const own = alone[one.host] as RateLimiter;
    if (one.kind === "throttled") for (const limiter of [common, own]) limiter.record429(request);
    else if (one.kind === "cooldown") for (const limiter of [common, own]) limiter.cooldownFor({ ...request, ms: 150 });
    else {
      const asked = { ...request, weight: one.weight };
      if (!onTry(common, own, asked)) return;
      const [granted, other] = [common.tryAcquire(asked), own.tryAcquire(asked)];
      assert.equal(granted === undefined, other === undefined);
      if (granted !== undefined && other !== undefined) this.#grants.push({ one: granted, other });
    }
  }

  /** Each key that the common limiter knows, beside the same key of its own limiter. */
  keys() {
    return this.common.snapshot().keys.map(one => {
      const [other] = (this.alone[HOSTS.indexOf(one.key)] as RateLimiter).snapshot().keys;
      return { one, other: other as typeof one };
    });
  }
}

test("a limiter of many keys, of which some are idle or forgotten, answers as one limiter for each key does", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async steps => {
      const ways = new TwoWays();
      for (const one of steps) {
        await ways.apply(one, (common, own, asked) => {
          assert.deepEqual(common.check(asked), own.check(asked));
          return true;
        });
        for (const { one, other } of ways.keys()) {
          assert.deepEqual([one.windows, one.nextFreeMs], [other.windows, other.nextFreeMs]);
          // A key that was forgotten counts from 0 again.
          assert.ok(one.acquired <= other.acquired);
        }
      }
    }),
    { numRuns: 120 },
  );
});

test("after reloads and throttles, a limiter that has forgotten keys grants nothing that one limiter for each key refuses", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof({ weight: 4, arbitrary: step }, wideningStep), { maxLength: 60 }),
      async steps => {
        const ways = new TwoWays();
        for (const one of steps) {
          // Of a forgotten key the number of units and the time of the last one are kept: it may count too many, never too few.
          await ways.apply(one, (common, _, asked) => common.check(asked) === undefined);
          for (const { one, other } of ways.keys())
            for (const [index, { used }] of one.windows.entries()) assert.ok(used >= (other.windows[index]?.used ?? 0));
        }
      },
    ),
    { numRuns: 120 },
  );
});

test("a snapshot lists the keys that are idle, with their counts", () => {
  const limiter = new RateLimiter(limitsOf(["2/HOUR"]), { time: new FakeTime() });
  for (const host of HOSTS) limiter.tryAcquire({ host });
  const { keys } = limiter.snapshot();
  assert.deepEqual(keys.map(({ key }) => key).sort(), HOSTS);
  assert.ok(keys.every(({ acquired, windows }) => acquired === 1 && windows[0]?.used === 1));
});

test("keys with many different counts keep them while other keys come and go", async () => {
  const time = new FakeTime();
  const limiter = new RateLimiter(limitsOf(["200/HOUR"]), { time });
  const countOf = (round: number, index: number) => 1 + ((index + round) % 150);
  for (const round of [1, 2]) {
    for (let index = 0; index < 300; index += 1)
      limiter.tryAcquire({ host: `r${round}-${index}.example`, weight: countOf(round, index) });
    const keys = new Map(limiter.snapshot().keys.map(({ key, windows }) => [key, windows[0]?.used]));
    for (let index = 0; index < 300; index += 1)
      assert.equal(keys.get(`r${round}-${index}.example`), countOf(round, index));
    await time.advance(3_600_000);
    for (let index = 0; index < 700; index += 1) limiter.tryAcquire({ host: `between-${round}-${index}.example` });
    await time.advance(3_600_000);
  }
});

test("a grant counts although a listener of the breakers has used other keys meanwhile", () => {
  const time = new FakeTime();
  const breakers = new BreakerRegistry({ advanced: { ramp_up: { enabled: false } } }, { time });
  const gate = new Gate(limitPoliciesFrom(limitsOf(["1/HOUR"]), "test"), time, { breakers });
  let isNested = false;
  breakers.listen(() => {
    if (isNested) return;
    isNested = true;
    for (const host of HOSTS) gate.tryEnter({ host, role: "metadata", stamp: "granted" })?.release();
  });
  const grant = gate.tryEnter({ host: "first.example", role: "metadata", stamp: "granted" }) as Grant;
  grant.release();
  assert.ok(isNested);
  assert.equal(gate.tryEnter({ host: "first.example", role: "metadata", stamp: "granted" }), undefined);
});

test("hosts become idle also after hundreds of hosts with limits of their own", () => {
  const listed = Array.from({ length: 300 }, (_, index) => `listed${index}.example`);
  const unlisted = Array.from({ length: 300 }, (_, index) => `unlisted${index}.example`);
  const hosts = Object.fromEntries(listed.map((host, index) => [host, { metadata: { rates: `${index + 1}/HOUR` } }]));
  const limits = limitPoliciesFrom({ hosts }, "test");
  const time = new FakeTime();
  const known = new KnownBudgets("metadata", {
    time,
    store: { isBlocking: false },
    keptKeys: 0,
    mayPack: () => true,
    isKept: () => false,
    onEvict: () => assert.fail("no host is forgotten within the hour"),
  });
  const budgets = [...listed, ...unlisted].map(host => {
    const budget = new RoleBudget(host, "metadata", limits.route(host, "metadata").roleBudget, undefined);
    budget.log.write(budget.windows, 1, time.monotonicUs());
    known.add(budget);
    return budget;
  });
  // A budget that has become idle is another object when it is used again.
  assert.ok(budgets.filter(({ isDetached }) => !isDetached).length <= 2);
  for (const { name, policy } of budgets) assert.equal(known.get(name)?.policy, policy);
});

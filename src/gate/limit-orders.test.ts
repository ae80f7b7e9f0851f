import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { OrderRequest } from "../breaker/orders.ts";
import { parseRates, type Rate } from "../core/limits/rate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { partitionName } from "../policy/partition-name.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { BreakerRegistry } from "./breaker-registry.ts";
import { Gate } from "./gate.ts";
import { breakersOf } from "./registry-breakers.ts";

const HOST = "a.example";
const ONE_PER_SECOND = { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 60_000 };
const POLICY = "6/SECOND+20/10SECOND";

function gateOf() {
  const time = new FakeTime();
  const breakers = new BreakerRegistry({}, { time, random: () => 0 });
  const limits = limitPoliciesFrom({ defaults: { metadata: { rates: POLICY, guard_ms: 0, max_delay_ms: 0 } } }, "test");
  const gate = new Gate(limits, time, { breakers });
  const order = (request: OrderRequest) => breakersOf(breakers).giveOrder({ unit: HOST, role: "metadata" }, request);
  const set = (rates: string, ms: number, isForced = false) =>
    order({ kind: "set-limit", ms, rates: parseRates(rates), isForced, reason: "test", by: "test" });
  const reset = () => order({ kind: "reset-limit", reason: "test", by: "test" });
  const send = () => {
    const grant = gate.tryEnter({ host: HOST, role: "metadata" });
    grant?.written();
    grant?.release();
    return grant !== undefined;
  };
  return { time, gate, set, reset, send };
}

type Step =
  | { readonly kind: "send" }
  | { readonly kind: "advance"; readonly ms: number }
  | { readonly kind: "set"; readonly rates: string; readonly ms: number; readonly isForced: boolean }
  | { readonly kind: "reset" };

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.constant<Step>({ kind: "send" }) },
    {
      weight: 3,
      arbitrary: fc.constantFrom(1, 100, 500, 999, 1000, 4000, 10_000).map((ms): Step => ({ kind: "advance", ms })),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("set" as const),
        rates: fc.constantFrom("2/SECOND", "9/SECOND", "1/3SECOND", "3/SECOND+30/MINUTE", "5/2SECOND", "7/MINUTE"),
        ms: fc.constantFrom(500, 3000, 60_000),
        isForced: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.constant<Step>({ kind: "reset" }) },
  ),
  { minLength: 10, maxLength: 120 },
);

test("every request keeps the rates in force when it is sent, whatever was sent before the order", () => {
  fc.assert(
    fc.property(steps, sequence => {
      const { time, set, reset, send } = gateOf();
      const sentUs: number[] = [];
      let ordered: { readonly rates: readonly Rate[]; readonly isForced: boolean; readonly endUs: number } | undefined;
      for (const step of sequence) {
        const nowUs = time.monotonicUs();
        if (step.kind === "advance") time.tick(step.ms);
        else if (step.kind === "reset") {
          reset();
          ordered = undefined;
        } else if (step.kind === "set") {
          set(step.rates, step.ms, step.isForced);
          ordered = { rates: parseRates(step.rates), isForced: step.isForced, endUs: nowUs + step.ms * 1000 };
        } else if (send()) {
          sentUs.push(nowUs);
          const order = ordered !== undefined && ordered.endUs > nowUs ? ordered : undefined;
          const inForce = [...(order?.isForced ? [] : parseRates(POLICY)), ...(order?.rates ?? [])];
          for (const { limit, windowUs } of inForce) {
            const inWindow = sentUs.filter(us => us > nowUs - windowUs).length;
            assert.ok(inWindow <= limit, `${inWindow} of ${limit} within ${windowUs / 1000} ms at ${nowUs / 1000} ms`);
          }
        }
      }
    }),
    { numRuns: 300 },
  );
});

test("an idle key that is forgotten has its ordered rates when it is used again", async () => {
  const { time, gate, set, send } = gateOf();
  set("1/SECOND", 86_400_000);
  assert.ok(send());
  await time.advance(3_600_000);
  for (let host = 0; host < 5000; host += 1) gate.tryEnter({ host: `h${host}.example`, role: "metadata" })?.release();
  assert.deepEqual([send(), send()], [true, false]);
});

test("an order ends at its instant by one timer, also if orders end in another order than they were given", async () => {
  const { time, gate, set } = gateOf();
  const rates = () =>
    gate
      .keySnapshots()[0]
      ?.windows.map(({ rate }) => rate)
      .join("+");
  set("2/SECOND", 5000);
  assert.equal(rates(), "2/SECOND+20/10SECOND");
  set("1/SECOND", 1000);
  assert.equal(rates(), "1/SECOND+20/10SECOND");
  await time.advance(999);
  assert.equal(rates(), "1/SECOND+20/10SECOND");
  await time.advance(1);
  assert.equal(rates(), POLICY, "the order before does not come back");
});

/** Three requests at 1/SECOND, of which two wait, and when they were granted. */
async function waitingAt(gate: Gate, time: FakeTime): Promise<{ readonly grantedMs: readonly number[] }> {
  const grantedMs: number[] = [];
  for (let index = 0; index < 3; index += 1)
    void Promise.resolve(gate.enter({ host: HOST, role: "metadata", stamp: "granted", maxWaitMs: 60_000 })).then(
      grant => {
        grantedMs.push(time.monotonicUs() / 1000);
        grant.release();
      },
    );
  await time.advance(10);
  return { grantedMs };
}

for (const role of ["metadata", "total"] as const)
  test(`an order for the key of a partition changes the ${role} of its host, and no waiting request is lost`, async () => {
    const time = new FakeTime();
    const breakers = new BreakerRegistry({}, { time, random: () => 0 });
    const gate = new Gate(limitPoliciesFrom({ defaults: { metadata: ONE_PER_SECOND } }, "test"), time, { breakers });
    const { grantedMs } = await waitingAt(gate, time);
    breakersOf(breakers).giveOrder(
      { unit: partitionName(HOST, "tenant"), role },
      { kind: "set-limit", ms: 60_000, rates: parseRates("1/5SECOND"), isForced: false, reason: "test", by: "test" },
    );
    await time.advance(20_000);
    // The total has the default guard.
    assert.deepEqual(
      grantedMs.map(ms => Math.floor(ms / 1000)),
      [0, 5, 10],
    );
  });

test("a hold for the key of a partition is no error, and no waiting request is lost", async () => {
  const time = new FakeTime();
  const breakers = new BreakerRegistry({}, { time, random: () => 0 });
  const gate = new Gate(limitPoliciesFrom({ defaults: { metadata: ONE_PER_SECOND } }, "test"), time, { breakers });
  const { grantedMs } = await waitingAt(gate, time);
  const reason = "cli-open:test";
  breakersOf(breakers).giveOrder(
    { unit: partitionName(HOST, "tenant"), role: "metadata" },
    { kind: "hold", ms: 1, reason },
  );
  await time.advance(5000);
  assert.deepEqual(grantedMs, [0, 1000, 2000]);
});

test("if a change of the limits fails, the waiting requests go on with the limits before", async () => {
  const time = new FakeTime();
  const limits = limitPoliciesFrom({ defaults: { metadata: ONE_PER_SECOND } }, "test");
  const gate = new Gate(limits, time);
  const { grantedMs } = await waitingAt(gate, time);
  const broken = new Proxy(limits, {
    get(target, key) {
      if (key === "maxInFlight") throw new Error("broken limits");
      return Reflect.get(target, key);
    },
  });
  assert.throws(() => gate.reload(broken), /broken limits/);
  assert.equal(gate.waiting, 2);
  await time.advance(5000);
  assert.deepEqual(grantedMs, [0, 1000, 2000]);
});

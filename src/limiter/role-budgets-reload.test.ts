import assert from "node:assert/strict";
import { test } from "node:test";
import { burst, host, keyOf, limiterOf, metadataLimits } from "../../test/limiter/kit.ts";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { Grant } from "./grant.ts";
import { LimiterEmitter } from "./limiter-emitter.ts";
import { RoleBudgets } from "./role-budgets.ts";

const slow = metadataLimits({ rates: "2/s", max_delay_ms: 60_000 });

test("new limits apply at once, and requests already sent still count", async () => {
  const { limiter, time } = limiterOf(metadataLimits({ rates: "10/MINUTE" }));
  for (let call = 0; call < 8; call += 1) assert.ok(limiter.tryAcquire({ host }));
  await time.advance(1000);
  limiter.reload(metadataLimits({ rates: "9/MINUTE" }));
  assert.ok(limiter.tryAcquire({ host }));
  const refusal = limiter.check({ host });
  assert.ok(refusal);
  assert.equal(refusal.retryAfterMs, 59_000);
  limiter.reload(metadataLimits({ rates: "20/MINUTE" }));
  const more = burst(limiter, 20);
  assert.equal(more, 11);
});

test("a window that is longer than the stored history assumes the worst case", async () => {
  const { limiter, time } = limiterOf(metadataLimits({ rates: "10/s" }));
  for (let second = 0; second < 10; second += 1) {
    for (let call = 0; call < 10; call += 1) limiter.tryAcquire({ host });
    await time.advance(1000);
  }
  limiter.reload(metadataLimits({ rates: "50/HOUR" }));
  const refusal = limiter.check({ host });
  assert.ok(refusal);
  assert.ok((refusal.retryAfterMs ?? 0) > 3_580_000, String(refusal.retryAfterMs));
});

test("waiting requests stay queued and are granted at the new pace, in the same order", async () => {
  const { limiter, time, log } = limiterOf(slow);
  const order: string[] = [];
  for (const name of ["a", "b", "c", "d", "e", "f"]) {
    limiter.acquire({ host }).then(() => order.push(`${name} ${time.monotonicUs() / 1000}`));
  }
  await time.advance(500);
  limiter.reload(metadataLimits({ rates: "4/s", max_delay_ms: 60_000 }));
  await time.advance(500);
  assert.deepEqual(order, ["a 0", "b 0", "c 500", "d 500", "e 1000", "f 1000"]);
  assert.deepEqual(log, []);
  assert.equal(time.armedTimers, 0);
});

test("new requests are judged by the new limits, not by estimates made under the old ones", async () => {
  const { limiter, time, start } = limiterOf(metadataLimits({ rates: "1/10s", max_delay_ms: 1e9 }));
  for (let call = 0; call < 6; call += 1) start();
  await time.advance(150);
  limiter.reload(metadataLimits({ rates: "1/s", max_delay_ms: 1e9 }));
  const refusal = limiter.check({ host });
  assert.ok(refusal);
  assert.equal(refusal.retryAfterMs, 5850);
});

test("a reload can end what was learned: the multiplier without AIMD, the shape by policy", async () => {
  const { limiter, time } = limiterOf({
    ...metadataLimits({ rates: "10/s", shape: "smooth" }),
    aimd: { enabled: true },
  });
  for (let call = 0; call < 10; call += 1) limiter.record429({ host });
  await time.advance(60_000);
  limiter.tickAimd();
  assert.deepEqual([keyOf(limiter).multiplier, keyOf(limiter).shape], [0.8, "smooth"]);
  limiter.reload(metadataLimits({ rates: "10/s" }));
  assert.deepEqual([keyOf(limiter).multiplier, keyOf(limiter).shape], [1, "burst"]);
});

test("a total or a service that is added counts requests in flight, and one that is removed no longer limits", async () => {
  const { limiter, time, start, log } = limiterOf(
    metadataLimits({ rates: "99/s", max_concurrent: 9, max_delay_ms: 9000 }),
  );
  const held = [(await start()) as Grant, (await start()) as Grant];
  const capped = {
    ...metadataLimits({ rates: "99/s", max_delay_ms: 9000 }),
    hosts: { [host]: { total: { max_concurrent: 2 } } },
  };
  limiter.reload(capped);
  start();
  await time.advance(100);
  assert.deepEqual(log, [0, 0]);
  held[0]?.release();
  await time.advance(0);
  assert.deepEqual(log, [0, 0, 100]);
  limiter.reload(metadataLimits({ rates: "99/s" }));
  assert.ok(limiter.tryAcquire({ host }));
  limiter.reload({ ...capped, groups: { one: { members: ["b.example"], total: { rates: "1/s" } } } });
  assert.equal(limiter.tryAcquire({ host }), undefined);
  held[1]?.release();
});

test("waiting requests follow their host into a service", async () => {
  const { limiter, time, start, log } = limiterOf(slow);
  for (let call = 0; call < 3; call += 1) start();
  await time.advance(100);
  limiter.reload({
    ...slow,
    groups: { pair: { members: [host, "b.example"], metadata: { rates: "1/10s", guard_ms: 0 } } },
  });
  await time.advance(9899);
  assert.deepEqual(log, [0, 0], "what the host has sent counts in the service too");
  await time.advance(1);
  assert.deepEqual(log, [0, 0, 10_000]);
  assert.equal(limiter.tryAcquire({ host: "b.example" }), undefined);
});

test("a total without keys at the time of the reload has the new limits too", async () => {
  const total = (rates: string) => ({
    ...metadataLimits({ rates: "99/s" }),
    hosts: { [host]: { total: { rates, guard_ms: 0 } } },
  });
  const { limiter, time } = limiterOf(total("50/s"));
  limiter.tryAcquire({ host });
  await time.advance(60_000);
  for (let visit = 0; visit < 9; visit += 1) limiter.tryAcquire({ host: `h${visit}.example` });
  limiter.reload(total("1/s"));
  const granted = burst(limiter, 3);
  assert.equal(granted, 1);
});

test("a service keeps its history when its first member leaves it", () => {
  const group = (...members: string[]) => ({
    groups: { pair: { members, metadata: { rates: "1/HOUR", guard_ms: 0 } } },
  });
  const { limiter } = limiterOf(group("a.example", "b.example"));
  assert.ok(limiter.tryAcquire({ host: "a.example" }));
  limiter.reload(group("b.example", "c.example"));
  assert.equal(limiter.tryAcquire({ host: "b.example" }), undefined);
  assert.throws(() => limiter.tryAcquire({ host: "service pair" }), RangeError);
});

test("requests of hosts that a reload puts into one service are served in the order of their arrival", async () => {
  const { limiter, time } = limiterOf(slow);
  const order: string[] = [];
  for (const name of ["a.example", "b.example"])
    for (let call = 0; call < 2; call += 1) limiter.tryAcquire({ host: name });
  for (const name of ["a1", "b1", "a2", "b2"]) {
    limiter.acquire({ host: `${name[0]}.example` }).then(() => order.push(name));
    await time.advance(10);
  }
  limiter.reload({
    ...slow,
    groups: { pair: { members: ["a.example", "b.example"], metadata: { rates: "1/s", guard_ms: 0 } } },
  });
  await time.advance(10_000);
  assert.deepEqual(order, ["a1", "b1", "a2", "b2"]);
});

test("a waiting request whose weight the new limits can never grant is refused with that reason", async () => {
  const { limiter, time, start } = limiterOf(metadataLimits({ rates: "4/s", max_delay_ms: 60_000 }));
  start({ weight: 4 });
  const heavy = start({ weight: 4 });
  await time.advance(0);
  limiter.reload(metadataLimits({ rates: "3/s", max_delay_ms: 60_000 }));
  assert.match(String(await heavy), /weight 4 is larger than the rate limit 3\/SECOND/);
});

test("a budget that was prepared is kept after a reload that routes its host to a service", async () => {
  const time = new FakeTime();
  const rates = { metadata: { rates: "1/s", guard_ms: 0 } };
  const gate = new Gate(limitPoliciesFrom({ defaults: rates }, "test"), time);
  gate.prepare("a.example", "metadata");
  const services = { pair: { members: ["a.example"], ...rates } };
  gate.reload(limitPoliciesFrom({ defaults: rates, services }, "test"));
  // Each new budget checks old ones, and drops those that may be forgotten.
  for (let index = 0; index < 9; index += 1) {
    gate.tryEnter({ host: `h${index}.example`, role: "metadata", stamp: "granted" });
    await time.advance(10_000);
  }
  assert.ok([...gate.roleBudgets()].some(({ name }) => name === "service pair"));
});

test("a member whose entry no longer sets a role shares the budget of its service again", () => {
  const rates = { rates: "1/s", guard_ms: 0 };
  const services = { pair: { members: ["a.example", "b.example"], metadata: rates } };
  const listed = (entry: object) => limitPoliciesFrom({ services, hosts: { "a.example": entry } }, "test");
  const gate = new Gate(listed({ metadata: rates, artifact: rates }), new FakeTime());
  const enter = (name: string) => gate.tryEnter({ host: name, role: "metadata", stamp: "granted" })?.host;
  assert.deepEqual([enter("a.example"), enter("b.example")], ["a.example", "service pair"]);
  gate.reload(listed({ artifact: rates }));
  assert.equal(enter("a.example"), undefined);
});

test("a total that is removed and added again counts each request once", () => {
  const { limiter } = limiterOf(totalLimits("10/min"));
  assert.equal(burst(limiter, 7), 7);
  limiter.reload(totalLimits(undefined));
  limiter.reload(totalLimits("10/min"));
  assert.equal(burst(limiter, 5), 3);
});

function totalLimits(rates: string | undefined) {
  const metadata = { rates: "100/s", guard_ms: 0 };
  return { hosts: { [host]: rates === undefined ? { metadata } : { metadata, total: { rates, guard_ms: 0 } } } };
}

test("with a store only a total that the reload has added is held until all processes have reported", async () => {
  const time = new FakeTime();
  const limits = (total: string | undefined) => limitPoliciesFrom(totalLimits(total), "test");
  const budgets = new RoleBudgets(limits("9/s"), time, new LimiterEmitter());
  budgets.isShared = true;
  await time.advance(60_000);
  budgets.reload(limits("9/s"));
  assert.equal(budgets.forHost(host, "metadata").above?.holdUntilUs, 0);
  budgets.reload(limits(undefined));
  budgets.reload(limits("9/s"));
  assert.equal(budgets.forHost(host, "metadata").above?.holdUntilUs, time.monotonicUs() + 1_600_000);
});

test("with a store an added total is held also after a second reload, and that of a service for a host that joins it", async () => {
  const time = new FakeTime();
  const limits = (options: RatelimitsOptions) => limitPoliciesFrom(options, "test");
  const budgets = new RoleBudgets(limits(totalLimits(undefined)), time, new LimiterEmitter());
  budgets.isShared = true;
  await time.advance(60_000);
  const untilUs = time.monotonicUs() + 1_600_000;
  budgets.reload(limits(totalLimits("9/s")));
  await time.advance(100);
  budgets.reload(limits(totalLimits("9/s")));
  assert.equal(budgets.forHost(host, "metadata").above?.holdUntilUs, untilUs);

  const service = (members: readonly string[]) =>
    limits({ services: { s: { members: [...members], total: { rates: "5/min" } } } });
  const joined = new RoleBudgets(service(["a.example"]), time, new LimiterEmitter());
  joined.isShared = true;
  joined.reload(service(["a.example", "b.example"]));
  assert.equal(joined.forHost("b.example", "metadata").above?.holdUntilUs, time.monotonicUs() + 1_600_000);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { burst, hasKey, host, keyOf, limiterOf, metadataLimits } from "../../test/limiter/kit.ts";
import { Gate } from "../gate/gate.ts";
import { RateLimiter } from "../gate/rate-limiter.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { Grant } from "./grant.ts";

const roles: RatelimitsOptions = {
  defaults: {
    metadata: { rates: "1/s", max_delay_ms: 200, guard_ms: 0 },
    artifact: { rates: "1/s", max_delay_ms: 2000, guard_ms: 0 },
  },
};

test("a key whose responses are being counted is kept, and forgotten after the count if nothing was learned", async () => {
  const { time, limiter, visit } = limiterOf({
    defaults: { metadata: { rates: "1/s", guard_ms: 0 } },
    aimd: { enabled: true, window_s: 60 },
  });
  await time.advance(100_000);
  limiter.recordSuccess({ host });
  await time.advance(30_000);
  visit(10);
  assert.ok(hasKey(limiter));
  await time.advance(30_000);
  visit(50);
  assert.equal(hasKey(limiter), false);
});

test("a key that is smooth by policy can be forgotten, one that became smooth cannot", async () => {
  for (const [shape, guard_ms, isKept] of [
    ["smooth", 0, false],
    ["burst", 250, true],
  ] as const) {
    const { time, limiter, visit } = limiterOf({
      defaults: { metadata: { rates: "1/s", shape, guard_ms } },
      aimd: { enabled: true, window_s: 60 },
    });
    if (isKept) limiter.record429({ host });
    else limiter.recordSuccess({ host });
    await time.advance(100_000);
    visit(50);
    assert.equal(hasKey(limiter), isKept);
  }
});

test("a response is recorded for the key that its path selects", () => {
  const limiter = new RateLimiter(
    { groups: { ols4: { members: ["www.example.org/ols4"] } } },
    { time: new FakeTime() },
  );
  limiter.record429({ host: "www.example.org", path: "/ols4/api" });
  assert.deepEqual(
    limiter.snapshot().keys.map(({ key: name, guardMs }) => [name, guardMs]),
    [["service ols4", 50]],
  );
});

test("hosts are limited separately, by their canonical names", () => {
  const { limiter } = limiterOf(metadataLimits({ rates: "1/s" }));
  assert.ok(limiter.tryAcquire({ host: "MÜNCHEN.example." }));
  assert.equal(limiter.tryAcquire({ host: "xn--mnchen-3ya.example" }), undefined);
  assert.ok(limiter.tryAcquire({ host: "b.example" }));
  assert.throws(() => limiter.tryAcquire({ host: "not a host" }), RangeError);
});

test("each role has its own windows, bound and counters", async () => {
  const { limiter, time, start, log } = limiterOf(roles);
  start({ role: "metadata" });
  start({ role: "metadata" });
  const first = start({ role: "artifact" });
  const second = start({ role: "artifact" });
  await time.advance(1000);
  assert.deepEqual(log.sort(), [0, 0, 1000, "RateLimitExceeded"].sort());
  assert.equal(((await first) as Grant).waitedMs, 0);
  assert.equal(((await second) as Grant).waitedMs, 1000);
  assert.deepEqual([keyOf(limiter).acquired, keyOf(limiter).refused], [1, 1]);
  assert.deepEqual([keyOf(limiter, "artifact").acquired, keyOf(limiter, "artifact").refused], [2, 0]);
});

test("a host's total limits all its roles together, and a refusal charges no window", () => {
  const { limiter } = limiterOf({
    ...roles,
    hosts: { [host]: { total: { rates: "1/10s", guard_ms: 0 } } },
  });
  assert.ok(limiter.tryAcquire({ host, role: "metadata" }));
  const refusal = limiter.check({ host, role: "artifact" });
  assert.ok(refusal);
  assert.equal(refusal.constraint.limit, "1/10SECOND");
  assert.equal(refusal.retryAfterMs, 10_000);
  assert.equal(keyOf(limiter, "artifact").windows[0]?.used, 0);
});

test("members of a service share its budget, and other hosts do not", () => {
  const { limiter } = limiterOf({
    groups: { arxiv: { members: ["export.arxiv.org", "arxiv.org"], total: { rates: "1/3SECOND" } } },
  });
  assert.ok(limiter.tryAcquire({ host: "export.arxiv.org" }));
  assert.equal(limiter.tryAcquire({ host: "arxiv.org", role: "artifact" }), undefined);
  assert.ok(limiter.tryAcquire({ host: "zenodo.org", role: "artifact" }));
});

test("services can split one host by path", () => {
  const { limiter } = limiterOf({
    groups: {
      ols4: { members: ["www.ebi.ac.uk/ols4"], metadata: { rates: "1/s" } },
      europepmc: { members: ["www.ebi.ac.uk/europepmc/"], metadata: { rates: "1/s" } },
    },
  });
  const call = (path: string) => limiter.tryAcquire({ host: "www.ebi.ac.uk", path }) !== undefined;
  assert.deepEqual(
    [call("/ols4/api/x"), call("/ols4"), call("/europepmc/webservices"), call("/ols4x"), call("/"), call("/europepmc")],
    [true, false, true, true, true, false],
  );
});

test("a listed member has its own role budgets, inherits what it does not set, and shares the group's total", () => {
  const { limiter } = limiterOf({
    groups: { pair: { members: ["a.example", "b.example"], metadata: { rates: "3/s" }, total: { rates: "4/s" } } },
    hosts: { "a.example": { metadata: { max_delay_ms: 7 } } },
  });
  const grants = (name: string) => burst(limiter, 5, name);
  assert.equal(grants("a.example"), 3);
  assert.equal(grants("b.example"), 1);
});

test("a key is forgotten only when a new one would behave the same", async () => {
  const { limiter, time } = limiterOf(metadataLimits({ rates: "1/MINUTE", max_concurrent: 5 }));
  const held = limiter.tryAcquire({ host: "held.example" });
  limiter.record429({ host: "wary.example" });
  const visit = (name: string) => limiter.tryAcquire({ host: name }) as Grant;
  for (let visits = 0; visits < 50; visits += 1) visit(`h${visits}.example`).release();
  assert.equal(limiter.snapshot().keys.length, 52);
  assert.equal(visit("h7.example"), undefined);
  await time.advance(60_000);
  for (let visits = 50; visits < 100; visits += 1) visit(`h${visits}.example`).release();
  const names = limiter.snapshot().keys.map(entry => entry.key);
  assert.ok(names.length <= 54, `${names.length} keys`);
  assert.ok(names.includes("held.example"));
  assert.ok(names.includes("wary.example"));
  (held as Grant).release();
});

test("grants that are never released neither block nor stay in memory, as long as concurrency is not limited", async () => {
  const { limiter, time } = limiterOf(metadataLimits({ rates: "1/s" }));
  for (let day = 0; day < 5; day += 1) {
    for (let visit = 0; visit < 100; visit += 1) limiter.tryAcquire({ host: `d${day}h${visit}.example` });
    await time.advance(86_400_000);
  }
  assert.equal(limiter.snapshot().inFlight, 0);
  assert.ok(limiter.snapshot().keys.length <= 200, `${limiter.snapshot().keys.length} keys`);
});

test("a prepared key is never evicted", () => {
  const gate = new Gate(limitPoliciesFrom({}, "test"), new FakeTime());
  gate.prepare(host, "metadata");
  for (let visit = 0; visit < 50; visit += 1)
    (gate.enter({ host: `h${visit}.example`, role: "metadata" }) as Grant).giveBack();
  assert.ok([...gate.roleBudgets()].some(({ name }) => name === host));
});

test("a granted unit counts in a total that a reload adds, and is returned to it", () => {
  const limits = (total: object) =>
    limitPoliciesFrom(
      { defaults: { metadata: { rates: "100/s", guard_ms: 0, max_delay_ms: 0 } }, hosts: { [host]: total } },
      "test",
    );
  const gate = new Gate(limits({}), new FakeTime());
  const first = gate.enter({ host, role: "metadata" }) as Grant;
  gate.reload(limits({ total: { rates: "1/h", guard_ms: 0 } }));
  assert.equal(gate.tryEnter({ host, role: "metadata" }), undefined);
  first.giveBack();
  assert.ok(gate.tryEnter({ host, role: "metadata" }));
});

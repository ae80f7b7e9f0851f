import assert from "node:assert/strict";
import { test } from "node:test";
import { host, plain, setUp } from "../../test/breaker/kit.ts";
import { ConfigError } from "../errors.ts";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import { breakersOf } from "../gate/registry-breakers.ts";
import { loadPolicy, type PolicySources } from "../policy/load.ts";
import { partitionName } from "../policy/partition-name.ts";

test("hosts without failures are evicted, others are not", () => {
  const { registry, answers } = setUp();
  answers(503, 1, { host: "ailing.example" });
  const permit = registry.allow({ host: "busy.example" });
  registry.open("closed.example", 60);
  for (let visit = 0; visit < 10_000; visit += 1) {
    answers(200, 1, { host: `h${visit}.example` });
    answers(404, 1, { host: `i${visit}.example` });
    registry.allow({ host: `j${visit}.example` }).release();
  }
  const names = new Set([...registry.statuses()].map(status => status.host));
  assert.ok(names.size <= 16_384, `${names.size} hosts are remembered`);
  for (const name of ["ailing.example", "busy.example", "closed.example"]) assert.ok(names.has(name), name);
  permit.release();
});

test("a call whose service is added to a full table keeps the circuit that it was found with", async () => {
  const breakers = { hosts: { [host]: { fail_max: 1, per: "partition" } } } as const;
  const services = { mine: { members: [host] } };
  const policy = await loadPolicy({ env: {}, breakers, ratelimits: { extends: "none", services } });
  for (const partition of [undefined, "tenant"]) {
    const { registry } = setUp();
    const { table } = breakersOf(registry);
    breakersOf(registry).reload(policy.breakers.resolved);
    const known = table.host(partition === undefined ? host : partitionName(host, partition));
    for (let visit = 1; visit < 16_384; visit += 1) table.host(`h${visit}.example`);
    const { circuit, cooldown } = table.ownersOf(host, "/", partition);
    assert.equal(circuit, known);
    for (const unit of [circuit, cooldown]) assert.equal(table.get(unit.name), unit);
  }
});

test("failed hosts that are not called for an hour are evicted", async () => {
  const { time, registry, answers } = setUp();
  for (let visit = 0; visit < 17_000; visit += 1) answers(503, 1, { host: `dead${visit}.example` });
  await time.advance(3_700_000);
  for (let visit = 0; visit < 17_000; visit += 1) answers(503, 1, { host: `gone${visit}.example` });
  const names = [...registry.statuses()].map(status => status.host);
  assert.ok(names.filter(name => name.startsWith("dead")).length < 3000, String(names.length));
});

test("an open circuit whose reset is longer than an hour is not evicted while it is open", async () => {
  const { time, registry, answers } = setUp({ ...plain, defaults: { fail_max: 1, reset_timeout_s: 7200 } });
  answers(503, 1);
  const visit = (name: string) => {
    for (let number = 0; number < 17_000; number += 1) answers(200, 1, { host: `${name}${number}.example` });
  };
  visit("a");
  await time.advance(3_700_000);
  visit("b");
  assert.equal(registry.state(host).state, "open");
});

test("a lowered threshold_failures applies at once", () => {
  const { registry, answers } = setUp({ defaults: { fail_max: 99 } });
  answers(503, 4);
  registry.reload({ defaults: { fail_max: 99 }, advanced: { rolling_window: { threshold_failures: 2 } } });
  answers(503, 1);
  assert.equal(registry.state(host).reason, "rolling-window");
});

test("close clears everything about a host, and closing an unknown host emits no event", () => {
  const { registry, answers, events } = setUp();
  registry.close("never.example");
  assert.deepEqual(events, []);
  answers(503, 5);
  registry.close(host);
  assert.deepEqual([registry.state(host).state, registry.state(host).windowFailures], ["closed", 0]);
});

test("reload applies at once, and open circuits keep their end", async () => {
  const { time, registry, answers, isAllowed } = setUp();
  answers(503, 5);
  answers(503, 2, { host: "b.example" });
  registry.reload({ ...plain, defaults: { fail_max: 3, reset_timeout_s: 5 } });
  answers(503, 1, { host: "b.example" });
  assert.equal(registry.remainingMs("b.example"), 5000);
  await time.advance(59_999);
  assert.equal(isAllowed(), false);
  await time.advance(1);
  assert.equal(isAllowed(), true);
  assert.throws(() => registry.reload({ defaults: { fail_max: 0 } }), ConfigError);
  assert.throws(
    () => registry.reload({ advanced: { cooldown_store: { backend: "redis" } } }),
    /backend "redis" is not supported by BreakerRegistry.*pass the option store/,
  );
});

test("invalid options are a ConfigError that names each path", () => {
  assert.throws(
    () =>
      new BreakerRegistry({
        defaults: { fail_max: 0, reset_timeout_s: 0 },
        hosts: { "not a host": {}, "a.example": JSON.parse('{"failmax": 3}') },
      }),
    (error: unknown) => {
      assert.ok(error instanceof ConfigError);
      assert.deepEqual(
        error.problems.map(({ path }) => path),
        ["defaults.fail_max", "defaults.reset_timeout_s", "hosts.not a host", "hosts.a.example.failmax"],
      );
      return true;
    },
  );
});

test("the key of a partition, with or without a tier, is denied as its calls are", () => {
  const other = "other.example";
  const { registry, answer } = setUp({ ...plain, hosts: { [host]: { per: "partition" } } });
  const denialOf = (name: string, partition: string) =>
    breakersOf(registry).denialOfKey(partitionName(name, partition), "metadata")?.reason;
  answer(429, {}, 60_000);
  assert.deepEqual(
    [denialOf(host, "a"), denialOf(`${host} with key`, "a")],
    [undefined, undefined],
    "a Retry-After without a partition is for calls without one",
  );
  answer(429, { partition: "a" }, 60_000);
  assert.deepEqual([denialOf(`${host} with key`, "a"), denialOf(`${host} with key`, "b")], ["retry-after", undefined]);
  registry.open(host, 90, "pause");
  assert.deepEqual([denialOf(`${host} with key`, "a"), denialOf(host, "b")], ["cli-open:pause", "cli-open:pause"]);
  for (let call = 0; call < 5; call += 1) answer(503, { host: other, partition: "a" });
  assert.equal(denialOf(`${other} with key`, "a"), "failures", "circuits of this host are not split by partition");
});

test("a host that is in shadow mode, or belongs to a service, after a reload is judged by it at the next call", async () => {
  const { registry, answers, isAllowed } = setUp();
  const reload = async (policy: PolicySources) =>
    breakersOf(registry).reload((await loadPolicy({ env: {}, ...policy })).breakers.resolved);
  const breakers = { extends: "none", ...plain } as const;
  answers(503, 5);
  assert.equal(isAllowed(), false);
  await reload({ breakers: { ...breakers, mode: "shadow" } });
  assert.equal(isAllowed(), true);
  await reload({ breakers });
  assert.equal(isAllowed(), false);
  const services = { mine: { members: [host, "mirror.example"] } };
  await reload({ breakers, ratelimits: { extends: "none", services } });
  registry.close(host);
  answers(503, 5);
  assert.equal(isAllowed({ host: "mirror.example" }), false, "the service has one circuit");
});

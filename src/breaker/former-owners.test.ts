import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { plain, setUp } from "../../test/breaker/kit.ts";
import { Gate } from "../gate/gate.ts";
import { breakersOf } from "../gate/registry-breakers.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { loadPolicy, type PolicySources } from "../policy/load.ts";
import type { OrderRequest } from "./orders.ts";

const HOST = "a.example";
const PER_PARTITION = { per: "partition" } as const;
const ENTRY = { fail_max: 5, reset_timeout_s: 60 } as const;

/** What the policy says about the host: who has its circuits and cooldowns. */
const LAYOUTS: Readonly<Record<string, PolicySources>> = {
  alone: {},
  "in a service": { ratelimits: { services: { one: { members: [HOST, "b.example"] } } } },
  "in another service": { ratelimits: { services: { two: { members: [HOST, "c.example"] } } } },
  "with a path in a service": { ratelimits: { services: { one: { members: [`${HOST}/x`, "b.example"] } } } },
  "listed in a service": {
    ratelimits: { services: { one: { members: [HOST, "b.example"] } } },
    breakers: { hosts: { [HOST]: ENTRY } },
  },
  "per partition": { breakers: { hosts: { [HOST]: PER_PARTITION } } },
  "in a service per partition": {
    ratelimits: { services: { one: { members: [HOST, "b.example"] } } },
    breakers: { services: { one: PER_PARTITION } },
  },
};
const CALLS = [
  { host: HOST, path: "/x" },
  { host: HOST, path: "/y" },
  { host: HOST, path: "/x", partition: "tenant" },
  { host: HOST, path: "/x", partition: "other" },
];

type Call = (typeof CALLS)[number];
const HOLD: OrderRequest = { kind: "hold", ms: 60_000, reason: "cli-open:test" };

async function world(layout: string) {
  const { time, registry, answer, answers } = setUp();
  const breakers = breakersOf(registry);
  const policyOf = async (name: string) => {
    const { ratelimits, breakers: own } = LAYOUTS[name] ?? {};
    const policy = {
      ratelimits: { extends: "none", ...(ratelimits as object) },
      breakers: { extends: "none", ...plain, ...(own as object) },
    };
    return (await loadPolicy({ env: {}, ...policy } as PolicySources)).breakers.resolved;
  };
  const reload = async (name: string) => breakers.reload(await policyOf(name));
  await reload(layout);
  const denied = () => CALLS.filter(call => registry.check(call) !== undefined);
  /** The calls that are permitted at the same time. */
  const permits = (call: Call) => [1, 2, 3].map(() => registry.tryAllow(call)).filter(({ isAllowed }) => isAllowed);
  return { time, registry, breakers, answer, answers, reload, denied, permits };
}

/** Each denies some calls for 60 s. */
const HELD: Readonly<Record<string, (of: Awaited<ReturnType<typeof world>>, call: Call) => unknown>> = {
  circuit: ({ answers }, call) => answers(503, 5, call),
  "Retry-After": ({ registry }, call) => registry.onFailure({ ...call, status: 429, retryAfterMs: 60_000 }),
  "order for the host": ({ registry }, call) => registry.open(call.host, 60),
  "order for its role": ({ breakers }, call) =>
    breakers.giveOrder(
      { unit: call.host, role: "metadata" },
      { kind: "open", ms: 60_000, reason: "cli-open:test", isReplacing: false },
    ),
  "order for the owner": ({ registry, breakers }, call) =>
    registry.open(breakers.table.policies.route(call.host, call.path).circuit, 60),
  hold: ({ breakers }, call) =>
    breakers.giveOrder({ unit: breakers.table.policies.route(call.host, call.path).circuit }, HOLD),
};

for (const [what, hold] of Object.entries(HELD)) {
  test(`${what}: what was denied before a reload is denied after it, until its end, in every layout of the circuits`, async () => {
    for (const before of Object.keys(LAYOUTS)) {
      for (const after of Object.keys(LAYOUTS)) {
        for (const call of CALLS) {
          const of = await world(before);
          hold(of, call);
          const expected = of.denied();
          assert.ok(expected.includes(call), `${before}: ${JSON.stringify(call)}`);
          await of.time.advance(1000);
          await of.reload(after);
          // A second reload does not lose it either.
          for (const next of [after, "alone"]) {
            await of.reload(next);
            const denied = of.denied();
            for (const one of expected)
              assert.ok(denied.includes(one), `${before} -> ${after} -> ${next}: ${JSON.stringify(one)}`);
          }
          await of.time.advance(58_999);
          for (const one of expected) assert.ok(of.denied().includes(one), `${before} -> ${after}: until its end`);
          await of.time.advance(1);
          assert.deepEqual(of.denied(), [], `${before} -> ${after}: after its end`);
        }
      }
    }
  });
}

test("a reload denies no call that was not denied before", async () => {
  const { answers, reload, denied, registry } = await world("per partition");
  answers(503, 5, { host: HOST, partition: "tenant" });
  await reload("alone");
  assert.deepEqual(denied(), [{ host: HOST, path: "/x", partition: "tenant" }]);
  const of = await world("with a path in a service");
  of.answers(503, 5, { host: HOST, path: "/x" });
  await of.reload("alone");
  assert.ok(of.denied().every(({ path }) => path === "/x"));
  await of.reload("in another service");
  assert.equal(of.registry.check({ host: "c.example" }), undefined);
  assert.equal(registry.check({ host: HOST, partition: "other" }), undefined);
});

test("a member that has left its service is not denied by what happens to the service afterwards", async () => {
  const { registry, reload, answers, denied, time } = await world("in a service");
  answers(503, 5, { host: HOST });
  await reload("with a path in a service");
  await time.advance(60_000);
  answers(200, 1, { host: "b.example" });
  answers(503, 5, { host: "b.example" });
  assert.equal(registry.check({ host: "b.example" })?.reason, "failures");
  assert.ok(denied().every(({ path }) => path === "/x"));
});

test("after its end, calls resume with one trial call, and all follow when it was answered", async () => {
  for (const after of ["alone", "in another service", "per partition"]) {
    const { time, answers, reload, permits } = await world("in a service");
    answers(503, 5, { host: HOST });
    await reload(after);
    await time.advance(60_000);
    // Each partition resumes by itself, if it has its own circuits now.
    for (const call of after === "per partition" ? CALLS.filter(({ path }) => path === "/x") : CALLS.slice(0, 1)) {
      const [trial, ...others] = permits(call);
      assert.equal(others.length, 0, `${after}: one trial call of ${JSON.stringify(call)}`);
      assert.ok(trial?.isAllowed);
      trial.report({ outcome: { kind: "success" }, status: 200 });
      const all = permits(call);
      assert.equal(all.length, 3);
      for (const permit of all) if (permit.isAllowed) permit.release();
    }
  }
});

for (const target of [HOST, "service one"]) {
  test(`an order to close ${target} ends what was carried over, before and after the first call`, async () => {
    for (const isCalled of [true, false]) {
      for (const role of [undefined, "metadata"] as const) {
        const { answers, breakers, reload, denied } = await world("in a service");
        answers(503, 5, { host: HOST });
        breakers.giveOrder({ unit: "service one" }, HOLD);
        await reload("alone");
        if (isCalled) assert.equal(denied().length, CALLS.length);
        breakers.giveOrder({ unit: target }, { kind: "release" });
        if (isCalled) assert.equal(denied().length, CALLS.length, "the circuit");
        breakers.giveOrder({ unit: target, role }, { kind: "close" });
        assert.deepEqual(denied(), []);
      }
    }
  });
}

test("tables and states name what was carried over", async () => {
  const { answers, breakers, reload, registry } = await world("in a service");
  answers(503, 5, { host: HOST });
  await reload("alone");
  assert.equal(registry.state(HOST).state, "open");
  assert.equal(registry.remainingMs(HOST), 60_000);
  assert.equal(breakers.denialOfKey(HOST, "metadata")?.host, "service one");
});

test("a call that waits for what was carried over is sent when an operator closes its host", async () => {
  const { time, registry, answers, reload, breakers } = await world("in a service");
  const gate = new Gate(limitPoliciesFrom({}, "test"), time, { breakers: registry, random: () => 0 });
  answers(503, 5, { host: HOST });
  await reload("alone");
  let waitedMs: number | undefined;
  const entering = Promise.resolve(gate.enter({ host: HOST, role: "metadata", maxWaitMs: 120_000 }));
  void entering.then(grant => {
    waitedMs = grant.waitedMs;
  });
  await time.advance(1000);
  assert.equal(waitedMs, undefined);
  breakers.giveOrder({ unit: HOST }, { kind: "close" });
  await time.advance(1);
  assert.equal(waitedMs, 1000);
});

test("what was carried over for a host is freed by the first call after its end and its trial call", async () => {
  const { time, answers, breakers, reload, permits } = await world("in a service");
  const call = { host: HOST, path: "/x" };
  answers(503, 5, call);
  await reload("alone");
  const carried = () => breakers.table.ownersOf(HOST).former;
  const weak = new WeakRef(carried()[0] as object);
  await time.advance(60_000);
  const [trial] = permits(call);
  assert.ok(trial?.isAllowed);
  trial.report({ outcome: { kind: "success" }, status: 200 });
  assert.deepEqual(carried(), []);
  // A WeakRef holds its object until the end of the turn that has made or read it.
  await new Promise(resolve => setImmediate(resolve));
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  assert.equal(weak.deref(), undefined);
  assert.equal(breakers.table.former.isEmpty, false);
});

test("what was carried over is freed by the next call after its end, without another reload", async () => {
  const { time, answers, breakers, reload, registry } = await world("in a service");
  answers(503, 5, { host: HOST });
  await reload("alone");
  assert.ok(registry.check({ host: HOST }) !== undefined);
  await time.advance(60_000 + 3_600_000 - 1);
  registry.check({ host: HOST });
  assert.equal(breakers.table.former.isEmpty, false);
  await time.advance(1);
  registry.check({ host: HOST });
  assert.equal(breakers.table.former.isEmpty, true);
});

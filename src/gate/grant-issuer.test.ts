import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf, host, role, roleLimits } from "../../test/limiter/kit.ts";
import type { Grant } from "../limiter/grant.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { Gate } from "./gate.ts";

test("counted and uncounted requests take turns at a shared slot", async () => {
  const { gate, time } = gateOf(roleLimits({ rates: "999/s", max_concurrent: 1 }));
  const order: string[] = [];
  const work = async (method: "GET" | "HEAD") => {
    using _grant = await gate.enter({ host, role, method });
    order.push(method[0] as string);
    await time.sleep(1);
  };
  const all = [..."GGGGHHH"].map(kind => work(kind === "G" ? "GET" : "HEAD"));
  await time.advance(50);
  await Promise.all(all);
  assert.match(order.join(""), /^G(HGHGHG)$/);
});

test("two role budgets whose releases alternate starve neither GET nor HEAD", async () => {
  const time = new FakeTime();
  const limits = limitPoliciesFrom(
    { defaults: { metadata: { rates: "9999/s", max_concurrent: 1, count_head: false } } },
    "test",
  );
  const gate = new Gate(limits, time);
  const served = new Map<string, number>();
  const work = async (name: string, method: "GET" | "HEAD") => {
    for (let call = 0; call < 50; call += 1) {
      const grant = await gate.enter({ host: name, role, method });
      served.set(`${name} ${method}`, (served.get(`${name} ${method}`) ?? 0) + 1);
      await time.sleep(2);
      grant.release();
    }
  };
  for (const name of ["x.example", "y.example"]) for (const method of ["GET", "HEAD"] as const) void work(name, method);
  await time.advance(60);
  const counts = ["x.example GET", "x.example HEAD", "y.example GET", "y.example HEAD"].map(
    key => served.get(key) ?? 0,
  );
  assert.ok(Math.min(...counts) >= 14, counts.join(", "));
});

test("a grant that is written late delays the estimates of the requests behind it", async () => {
  const time = new FakeTime();
  const gate = new Gate(limitPoliciesFrom({ defaults: { metadata: { rates: "1/s", guard_ms: 0 } } }, "test"), time);
  const grant = gate.enter({ host, role }) as Grant;
  void gate.enter({ host, role, maxWaitMs: 5000 });
  await time.advance(900);
  grant.written();
  const refusal = gate.check({ host, role });
  assert.ok(refusal);
  assert.equal(refusal.retryAfterMs, 2000);
});

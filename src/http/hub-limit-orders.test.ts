import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { only, recordEvents, serve, until } from "../../test/http/kit.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-options.ts";
import type { Role } from "../policy/roles.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { createHub } from "./create-hub.ts";
import { internalsOf } from "./hub-internals.ts";

const HOST = "127.0.0.1";
const TEN = { rates: "10/SECOND", guard_ms: 0, max_delay_ms: 0 };
const DEFAULTS = { metadata: TEN, landing: TEN, artifact: TEN };

async function setUp(t: TestContext, ratelimits: RatelimitsOptions = {}) {
  const time = new FakeTime();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const server = await serve(t, (request, response) => {
    if (request.url === "/slow") void released.then(() => response.end("ok"));
    else response.end("ok");
  });
  const hub = await createHub({
    ...{ env: {}, cache: false, retry: false, time },
    policy: { ratelimits: { extends: "none", defaults: DEFAULTS, ...ratelimits }, breakers: { extends: "none" } },
  });
  t.after(() => {
    release();
    return hub.destroy();
  });
  const send = async (role: Role = "metadata", origin = server.origin) => {
    const response = await hub.fetch(origin, { role }).catch(error => error);
    if (response instanceof Response) await response.text();
    return response;
  };
  /** How many of a number of requests are sent at once, with the roles in turn. */
  const sent = async (calls: number, origin = server.origin) => {
    let count = 0;
    for (let call = 0; call < calls; call += 1) {
      const role = (["metadata", "landing", "artifact"] as const)[call % 3];
      if ((await send(role, origin)) instanceof Response) count += 1;
    }
    return count;
  };
  return { time, hub, server, send, sent, release };
}

test("an order for the total of a host limits all its roles together, counts what was sent before, and ends", async t => {
  const { time, hub, send, sent } = await setUp(t);
  const events = recordEvents(hub);
  assert.equal(await sent(3), 3);
  hub.limits.set(`${HOST}:total`, "5/SECOND", { seconds: 60, reason: "quota", by: "ann@ops" });
  assert.equal(await sent(9), 2, "three of five were sent before the order");
  const refused = await send("landing");
  assert.match(refused.message, /^rate limit 5\/SECOND of 127\.0\.0\.1 \(landing\) reached/);
  assert.equal(refused.decidedBy.where, "an operator's order: quota (ann@ops)");
  const [key] = hub.limits.list();
  assert.equal(key?.order, undefined);
  assert.deepEqual(key?.totalOrder, {
    ...{ owner: HOST, rates: "5/SECOND", reason: "quota", by: "ann@ops" },
    ...{ remainingMs: 60_000, isLooser: false, policyRates: "" },
  });
  await time.advance(59_999);
  assert.equal(await sent(9), 5);
  await time.advance(1);
  assert.equal(await sent(12), 12, "after its end each role has its own ten");
  hub.limits.set(`${HOST}:total`, "1/HOUR", { by: "ann@ops" });
  await time.advance(2000);
  assert.equal(await sent(3), 0);
  hub.limits.reset(HOST, { reason: "all is well", by: "bob@ops" });
  assert.equal(await sent(3), 3, "reset without a role ends the order for the total too");
  assert.deepEqual(
    only(events, "limit_ordered").map(({ role, old, new: now, reason }) => [role, old, now, reason]),
    [
      ["total", "none", "5/SECOND", "quota"],
      ["total", "5/SECOND", "none", "the time of the order is over"],
      ["total", "none", "1/HOUR", "operator"],
      ["total", "1/HOUR", "none", "all is well"],
    ],
  );
});

test("the end of an order is reported to the programs that have deferred the requests that it refused", async t => {
  const { time, hub, send } = await setUp(t);
  let eased = 0;
  internalsOf(hub)?.onLimitsEased(() => {
    eased += 1;
  });
  hub.limits.set(`${HOST}:metadata`, "1/HOUR", { seconds: 60 });
  await send();
  assert.equal((await send()).retryAfterMs, 3_600_000, "longer than the order lasts");
  const before = eased;
  await time.advance(59_999);
  assert.equal(eased, before);
  await time.advance(1);
  assert.equal(eased, before + 1);
  assert.ok((await send()) instanceof Response);
});

test("an order for a total can only tighten that of the policy, unless it is forced", async t => {
  const { hub, sent } = await setUp(t, { hosts: { [HOST]: { total: { rates: "6/SECOND", guard_ms: 0 } } } });
  assert.throws(() => hub.limits.set(`${HOST}:total`, "8/SECOND"), {
    name: "RangeError",
    message: "8/SECOND is looser than 6/SECOND of 127.0.0.1 (total) in the policy; pass force to set it anyway",
  });
  hub.limits.set(`${HOST}:total`, "8/SECOND", { force: true });
  assert.equal(hub.limits.list()[0]?.totalOrder?.isLooser, true);
  assert.equal(await sent(12), 8);
});

test("an order for the total of a service limits all its hosts together", async t => {
  const services = { loop: { members: [HOST, "localhost"], metadata: TEN, landing: TEN, artifact: TEN } };
  const { hub, server, sent } = await setUp(t, { services });
  hub.limits.set(`${HOST}:total`, "4/SECOND");
  assert.equal(hub.limits.list()[0]?.totalOrder?.owner, "service loop");
  assert.equal(await sent(3), 3);
  assert.equal(await sent(3, server.origin.replace(HOST, "localhost")), 1);
});

test("a total that could not count every request is a RangeError", async t => {
  const services = { loop: { members: [HOST, "localhost"], metadata: TEN } };
  const { hub } = await setUp(t, { services, hosts: { localhost: { metadata: { rates: "5/SECOND" } } } });
  assert.throws(
    () => hub.limits.set("localhost:total", "1/SECOND"),
    /localhost has no total of its own: some of its roles share the limits of service loop/,
  );
  assert.throws(
    () => hub.limits.set("service:loop:total", "1/SECOND"),
    /service loop has no total in the policy, and localhost has limits of its own: add a total to the policy/,
  );
});

test("each host of a service with per_host has a total of its own, which an order for the service limits", async t => {
  const { hub, server } = await setUp(t, { services: { each: { per_host: true, metadata: TEN } } });
  hub.limits.set("service:each:total", "2/SECOND");
  const send = async (origin: string) => {
    const response = await hub.fetch(origin, { service: "each" }).catch(() => undefined);
    await response?.text();
    return response !== undefined;
  };
  const count = async (origin: string) => {
    let all = 0;
    for (let call = 0; call < 4; call += 1) if (await send(origin)) all += 1;
    return all;
  };
  assert.equal(await count(server.origin), 2);
  assert.equal(await count(server.origin.replace(HOST, "localhost")), 2);
});

test("an order changes the number of requests in flight of a role or of the total, and ends again", async t => {
  const { hub, server, release } = await setUp(t, { defaults: { metadata: { ...TEN, max_concurrent: 3 } } });
  const events = recordEvents(hub);
  hub.limits.set(`${HOST}:metadata`, [], { maxConcurrent: 1, reason: "busy", by: "ann@ops" });
  const calls = [1, 2, 3].map(() => hub.fetch(`${server.origin}/slow`, { maxWaitMs: 60_000 }));
  await until(() => hub.snapshot().inFlight === 1 && hub.snapshot().waiting === 2);
  const [key] = hub.limits.list();
  assert.deepEqual(
    [key?.maxConcurrent, key?.order?.maxConcurrent, key?.order?.policyMaxConcurrent, key?.order?.rates],
    [1, 1, 3, ""],
  );
  assert.equal(key?.windows[0]?.rate, "10/SECOND");
  assert.throws(() => hub.limits.set(`${HOST}:metadata`, [], { maxConcurrent: 4 }), {
    message:
      "max_concurrent 4 is looser than max_concurrent 3 of 127.0.0.1 (metadata) in the policy; pass force to set it anyway",
  });
  hub.limits.set(`${HOST}:metadata`, [], { maxConcurrent: 2, by: "ann@ops" });
  await until(() => hub.snapshot().inFlight === 2);
  hub.limits.set(`${HOST}:total`, [], { maxConcurrent: 2, by: "ann@ops" });
  hub.limits.reset(`${HOST}:metadata`, { by: "ann@ops" });
  assert.deepEqual([hub.snapshot().inFlight, hub.snapshot().waiting], [2, 1], "the total allows two");
  const refused = await hub.fetch(server.origin, { role: "landing", maxWaitMs: 0 }).catch(error => error);
  assert.deepEqual(refused.constraint, { kind: "concurrency", owner: HOST, limit: "max_concurrent 2" });
  assert.match(refused.decidedBy.where, /^an operator's order: operator \(ann@ops\)$/);
  hub.limits.reset(`${HOST}:total`, { by: "ann@ops" });
  await until(() => hub.snapshot().inFlight === 3);
  release();
  for (const response of await Promise.all(calls)) assert.equal(await response.text(), "ok");
  assert.deepEqual(
    only(events, "limit_ordered").map(({ role, old, new: now }) => [role, old, now]),
    [
      ["metadata", "10/SECOND, max_concurrent 3", "10/SECOND, max_concurrent 1"],
      ["metadata", "10/SECOND, max_concurrent 1", "10/SECOND, max_concurrent 2"],
      ["total", "none, max_concurrent none", "none, max_concurrent 2"],
      ["metadata", "10/SECOND, max_concurrent 2", "10/SECOND, max_concurrent 3"],
      ["total", "none, max_concurrent 2", "none, max_concurrent none"],
    ],
  );
});

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { serve } from "../../test/http/kit.ts";
import { BreakerOpenError } from "../errors.ts";
import type { Role } from "../policy/roles.ts";
import { createHub } from "./create-hub.ts";

async function hubAndServer(t: TestContext) {
  const served: { status: number; retryAfter?: string } = { status: 200 };
  const { origin } = await serve(t, (_, response) => {
    if (served.retryAfter !== undefined) response.setHeader("retry-after", served.retryAfter);
    response.writeHead(served.status).end();
  });
  const hub = await createHub({
    env: {},
    cache: false,
    retry: false,
    policy: {
      breakers: { extends: "none" },
      ratelimits: { extends: "none", services: { arxiv: { members: ["arxiv.example"] } } },
    },
  });
  t.after(() => hub.close());
  const send = async (role: Role = "metadata", resolver?: string) => {
    const response = await hub.fetch(origin, { role, resolver }).catch(error => error);
    if (response instanceof BreakerOpenError) return response.reason;
    await response.arrayBuffer();
    return response.status;
  };
  return { hub, served, origin, send };
}

test("a program opens, looks at and closes a circuit without a store", async t => {
  const { hub, origin, send } = await hubAndServer(t);
  assert.equal(await send(), 200);
  const opened = hub.breakers.open(origin, { seconds: 300, reason: "maintenance" });
  assert.deepEqual(
    [opened.kind, opened.name, opened.state, opened.reason],
    ["host", "127.0.0.1", "open", "cli-open:maintenance"],
  );
  assert.ok(opened.remainingMs > 299_000 && opened.remainingMs <= 300_000);
  assert.equal(await send(), "cli-open:maintenance");
  assert.equal(hub.breakers.open("127.0.0.1", { seconds: 10 }).reason, "cli-open:maintenance", "the later end counts");
  const shorter = hub.breakers.open("127.0.0.1", { seconds: 10, replace: true });
  assert.ok(shorter.remainingMs <= 10_000);
  assert.deepEqual(
    hub.breakers.list().map(({ name, state }) => [name, state]),
    [["127.0.0.1", "open"]],
  );
  assert.equal(hub.breakers.close("127.0.0.1").state, "closed");
  assert.equal(hub.breakers.state("127.0.0.1").state, "closed");
  assert.equal(await send(), 200);
});

test("an order may be for one role, a service or a resolver", async t => {
  const { hub, send } = await hubAndServer(t);
  const landing = hub.breakers.open("127.0.0.1:landing", { seconds: 60 });
  assert.deepEqual([landing.role, landing.state], ["landing", "open"]);
  assert.equal(hub.breakers.state("127.0.0.1:metadata").state, "closed");
  assert.equal(await send("landing"), "cli-open:operator");
  assert.equal(await send("metadata"), 200);
  hub.breakers.close("127.0.0.1:landing");
  assert.equal(await send("landing"), 200);

  assert.equal(hub.breakers.open("resolver:crossref", { seconds: 60 }).kind, "resolver");
  assert.equal(await send("metadata", "crossref"), "cli-open:operator");
  assert.equal(await send("metadata", "openalex"), 200);
  assert.ok(
    hub.breakers.list().some(({ kind, name, state }) => kind === "resolver" && name === "crossref" && state === "open"),
  );
  assert.equal(hub.breakers.close("resolver:crossref").state, "closed");
  assert.equal(await send("metadata", "crossref"), 200);
  assert.deepEqual(
    [hub.breakers.open("service:arxiv", { seconds: 60 }).kind, hub.breakers.state("service:arxiv").name],
    ["service", "arxiv"],
  );
});

test("a circuit that is forced half-open sends trial calls, and their result decides", async t => {
  const { hub, served, send } = await hubAndServer(t);
  for (const [status, state] of [
    [503, "open"],
    [200, "closed"],
  ] as const) {
    served.status = status;
    hub.breakers.open("127.0.0.1", { seconds: 300 });
    assert.equal(hub.breakers.halfOpen("127.0.0.1").state, "half_open");
    assert.equal(await send(), status);
    assert.equal(hub.breakers.state("127.0.0.1:metadata").state, state);
  }
});

test("a wrong target or duration is a RangeError that names it", async t => {
  const { hub } = await hubAndServer(t);
  assert.throws(
    () => hub.breakers.open("127.0.0.1", { seconds: 0 }),
    /seconds must be greater than 0 and at most 31622400 \(a year\), got 0/,
  );
  assert.throws(() => hub.breakers.open("127.0.0.1", { seconds: 1e11 }), /at most 31622400 \(a year\)/);
  assert.throws(() => hub.breakers.close("not a host"), /"not a host" is neither a host nor a URL/);
  assert.throws(() => hub.breakers.state("resolver:x:landing"), /one circuit for all roles/);
});

test("the state of a host that belongs to a service is what decides about its calls", async t => {
  const { hub } = await hubAndServer(t);
  hub.breakers.open("service:arxiv", { seconds: 60, reason: "quota" });
  const { kind, name, state, reason } = hub.breakers.state("arxiv.example:landing");
  assert.deepEqual([kind, name, state, reason], ["host", "arxiv.example", "open", "cli-open:quota"]);
  assert.equal(hub.breakers.close("arxiv.example").state, "closed");
  assert.equal(hub.breakers.open("arxiv.example:landing", { seconds: 60 }).state, "open");
  assert.equal(hub.breakers.state("service:arxiv").state, "closed");
});

test("the state of one role has no values of another role", async t => {
  const { hub, served, send } = await hubAndServer(t);
  served.status = 429;
  served.retryAfter = "5";
  assert.equal(await send(), 429);
  hub.breakers.open("127.0.0.1:artifact", { seconds: 600, reason: "artifacts" });
  const metadata = hub.breakers.state("127.0.0.1:metadata");
  assert.deepEqual([metadata.role, metadata.state, metadata.reason], ["metadata", "open", "retry-after"]);
  assert.ok(metadata.remainingMs > 0 && metadata.remainingMs <= 5000, `${metadata.remainingMs}`);
  const { state, reason } = hub.breakers.close("127.0.0.1:metadata");
  assert.deepEqual([state, reason], ["open", "retry-after"], "an order for one role leaves the cooldown");
  assert.equal(hub.breakers.state("127.0.0.1").reason, "cli-open:artifacts");
});

test("an order to close or half-open one role changes that role of the service alone", async t => {
  const { hub } = await hubAndServer(t);
  const states = (target: string) =>
    (["metadata", "landing", "artifact"] as const).map(role => hub.breakers.state(`${target}:${role}`).state);
  assert.equal(hub.breakers.halfOpen("arxiv.example:metadata").state, "half_open");
  assert.deepEqual(states("service:arxiv"), ["half_open", "closed", "closed"]);
  hub.breakers.open("service:arxiv:metadata", { seconds: 60 });
  hub.breakers.open("service:arxiv:landing", { seconds: 60 });
  assert.equal(hub.breakers.close("arxiv.example:metadata").state, "closed");
  assert.deepEqual(states("service:arxiv"), ["closed", "open", "closed"]);
  hub.breakers.open("service:arxiv", { seconds: 60 });
  assert.equal(hub.breakers.halfOpen("arxiv.example:metadata").state, "open", "the cooldown stays");
});

test("a host whose service has the circuits does not stay half-open after the trial calls", async t => {
  const { hub } = await hubAndServer(t);
  hub.breakers.halfOpen("arxiv.example");
  hub.breakers.close("service:arxiv");
  assert.equal(hub.breakers.state("arxiv.example").state, "closed");
  assert.deepEqual(
    hub.breakers.list().filter(({ state }) => state !== "closed"),
    [],
  );
});

test("an order for one partition is refused, and does not change its host", async t => {
  const { hub, origin } = await hubAndServer(t);
  const partition = "127.0.0.1#0123456789abcdef";
  for (const target of [partition, `${partition}:metadata`, `host:${partition}`, "127.0.0.1/x#0123456789abcdef"])
    assert.throws(
      () => hub.breakers.open(target, { seconds: 60 }),
      error => error instanceof RangeError && /partition.*127\.0\.0\.1/.test(error.message),
    );
  assert.throws(() => hub.limits.hold(partition, { seconds: 60 }), RangeError);
  assert.throws(() => hub.breakers.state("service:arxiv#0123456789abcdef"), RangeError);
  assert.equal(hub.breakers.state("127.0.0.1").state, "closed");
  // The fragment of a URL is no part of the host.
  assert.equal(hub.breakers.open(`${origin}/page#0123456789abcdef`, { seconds: 60 }).name, "127.0.0.1");
});

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type TestContext, test } from "node:test";
import { fetch as undiciFetch, request as undiciRequest } from "undici";
import { ConfigError } from "../../src/errors.ts";
import { createHub } from "../../src/http/create-hub.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { hubFor, only, recordEvents, serve, until } from "./kit.ts";

test("a hub's dispatcher serves undici's functions and Node's own fetch, with its options", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t);
  const events = recordEvents(hub);
  const dispatcher = hub.dispatcher({ role: "landing" });
  await (await undiciRequest(server.origin, { dispatcher })).body.text();
  await (await undiciFetch(server.origin, { dispatcher })).text();
  await (await fetch(server.origin, { dispatcher } as unknown as RequestInit)).text();
  await (await undiciRequest(server.origin, { dispatcher, role: "artifact" } as never)).body.text();
  assert.deepEqual(
    only(events, "http_request").map(({ role }) => role),
    ["landing", "landing", "landing", "artifact"],
  );
});

test("once installed, every fetch of the process passes the hub, and the way back is clean", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t);
  const events = recordEvents(hub);
  const uninstall = hub.install();
  await (await fetch(server.origin)).text();
  await (await undiciFetch(server.origin)).text();
  await (await undiciRequest(server.origin)).body.text();
  assert.equal(only(events, "http_request").length, 3);
  uninstall();
  await (await fetch(server.origin)).text();
  await (await undiciRequest(server.origin)).body.text();
  assert.equal(only(events, "http_request").length, 3);
});

test("an installed hub makes a program wait where it cannot catch a refusal", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0 } } },
  });
  t.after(hub.install());
  await fetch(server.origin);
  const later = fetch(server.origin);
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(1000);
  assert.equal((await later).status, 200);
});

test("what is sent inside hub.with carries its options, the inner ones over the outer", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t);
  const events = recordEvents(hub);
  t.after(hub.install());
  const sdk = async () => {
    await new Promise(resolve => setImmediate(resolve));
    return (await fetch(server.origin)).text();
  };
  await hub.with({ role: "landing", resolver: "one" }, async () => {
    await sdk();
    await hub.with({ role: "artifact" }, sdk);
    await (await hub.fetch(server.origin, { role: "metadata" })).text();
  });
  await sdk();
  assert.deepEqual(
    only(events, "http_request").map(({ role }) => role),
    ["landing", "artifact", "metadata", "metadata"],
  );
  assert.deepEqual(
    only(events, "breaker_before_call").map(({ resolver }) => resolver),
    ["one", "one", "one", undefined],
  );
});

test("who waited finds himself in his own asynchronous context, and so does the wire", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const context = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const { makeWire } = await import("../../src/http/wire/wire.ts");
  const wire = makeWire({ allowPrivate: true });
  t.after(() => wire.destroy());
  const dispatch = wire.dispatch.bind(wire);
  wire.dispatch = (options, handler) => {
    seen.push(context.getStore());
    return dispatch(options, handler);
  };
  const hub = await hubFor(t, {
    time,
    cache: false,
    dispatcher: wire,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 9000 } } },
  });
  const calls = ["a", "b", "c"].map(name =>
    context.run(name, async () => {
      await (await hub.fetch(server.origin)).text();
      return context.getStore();
    }),
  );
  for (const waiting of [2, 1]) {
    await until(() => hub.snapshot().waiting === waiting && hub.snapshot().inFlight === 0);
    await time.advance(1000);
  }
  assert.deepEqual(await Promise.all(calls), ["a", "b", "c"]);
  assert.deepEqual(seen, ["a", "b", "c"]);
});

test("closing waits for those in line and for bodies, takes nobody new, and then ends", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 9000 } } },
  });
  const answers = Array.from({ length: 3 }, async () => (await hub.fetch(server.origin)).text());
  await until(() => hub.snapshot().waiting === 2);
  let isClosed = false;
  const closed = hub.close().then(() => {
    isClosed = true;
  });
  await assert.rejects(hub.request(server.origin), { code: "DOCSTOKG_CLOSED" });
  for (const sent of [2, 3]) {
    await until(() => hub.snapshot().inFlight === 0);
    assert.equal(isClosed, false);
    await time.advance(1000);
    await until(() => server.requests.length === sent);
  }
  assert.deepEqual(await Promise.all(answers), ["ok", "ok", "ok"]);
  await closed;
  assert.equal(time.armedTimers, 0);
  await hub.close();
});

test("destroying fails what is in line and what is on the wire, and leaves nothing behind", async t => {
  const time = new FakeTime();
  const server = await serve(t, () => undefined);
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 9000 } } },
  });
  const answers = Promise.allSettled([hub.request(server.origin), hub.request(server.origin)]);
  await until(() => server.requests.length === 1);
  await hub.destroy(new Error("power cut"));
  for (const { reason } of (await answers) as PromiseRejectedResult[]) assert.match(reason.message, /power cut/);
  const { calls, inFlight, waiting } = hub.snapshot();
  assert.deepEqual(
    { calls, inFlight, waiting, timers: time.armedTimers },
    { calls: 0, inFlight: 0, waiting: 0, timers: 0 },
  );
});

test("a reload changes the limits under those who wait, and a bad one changes nothing", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { hosts: { "127.0.0.1": { metadata: { rates: "1/MINUTE", guard_ms: 0, max_delay_ms: 120_000 } } } },
  });
  assert.equal(hub.policyFor("127.0.0.1").rates, "1/MINUTE");
  await (await hub.fetch(server.origin)).text();
  const waiting = hub.fetch(server.origin);
  await until(() => hub.snapshot().waiting === 1);
  await assert.rejects(
    hub.reload({ ratelimits: { hosts: { "127.0.0.1": { metadata: { rates: "fast" } } } } }),
    ConfigError,
  );
  assert.equal(hub.policyFor("127.0.0.1").rates, "1/MINUTE");
  const rates = "1/SECOND";
  await hub.reload({
    ratelimits: { extends: "none", hosts: { "127.0.0.1": { metadata: { rates, guard_ms: 0, max_delay_ms: 9000 } } } },
    breakers: { extends: "none" },
  });
  await time.advance(1000);
  assert.equal(await (await waiting).text(), "ok");
  assert.equal(hub.policyFor("127.0.0.1").rates, "1/SECOND");
});

test("a service draws on the budget of its group, whatever the host", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    cache: false,
    limits: {
      groups: {
        mirror: { members: ["mirror.example"], metadata: { rates: "1/MINUTE", guard_ms: 0, max_delay_ms: 0 } },
      },
    },
  });
  await (await hub.request(server.origin, { service: "mirror" })).body.text();
  await assert.rejects(hub.request(`http://localhost:${server.port}`, { service: "mirror" }), /1\/MINUTE of/);
  await (await hub.request(server.origin)).body.text();
  await assert.rejects(hub.request(server.origin, { service: "nobody" }), RangeError);
});

test("a policy for a port is for that port", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    cache: false,
    limits: { hosts: { [`127.0.0.1:${server.port}`]: { metadata: { rates: "7/SECOND", guard_ms: 0 } } } },
  });
  await (await hub.fetch(server.origin)).text();
  assert.deepEqual(
    hub.snapshot().keys.map(({ host }) => host),
    [`127.0.0.1:${server.port}`],
  );
});

test("a call with options that make no sense is told so, and nothing is sent", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t);
  await assert.rejects(hub.request(server.origin, { deadlineMs: 0 }), /deadlineMs must be a number above 0/);
  await assert.rejects(hub.request(server.origin, { maxWaitMs: -1 }), /maxWaitMs must be 0 or more/);
  await assert.rejects(hub.request(server.origin, { weight: 1.5 }), /weight must be a whole number/);
  await assert.rejects(hub.request(server.origin, { role: "nobody" as never }), /unknown role/);
  await assert.rejects(hub.fetch("ftp://example.org/"));
  assert.equal(server.requests.length, 0);
  assert.equal(hub.snapshot().calls, 0);
  await assert.rejects(createHub({ env: {}, retry: { attempts: 0 } }), /retry.attempts must be a whole number from 1/);
  await assert.rejects(createHub({ env: {}, cache: "disk" as never }), /cache must be/);
});

/** Runs a program of its own, as a user would. */
async function run(t: TestContext, code: string, env: Record<string, string>, ...args: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), "docstokg-register-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "app.mjs");
  writeFileSync(file, code);
  const register = resolve(import.meta.dirname, "../../src/register.ts");
  const child = spawn(process.execPath, ["--import", register, file, ...args], { env: { ...process.env, ...env } });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", chunk => {
    stdout += chunk;
  });
  child.stderr.on("data", chunk => {
    stderr += chunk;
  });
  const [code_] = await once(child, "close");
  return { code: code_, stdout, stderr };
}

test("with --import, an unchanged program becomes polite and still ends by itself", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const { code, stdout, stderr } = await run(
    t,
    "const answers = [1, 2, 3, 4, 5, 6].map(async n => (await fetch(process.argv[2] + '/' + n)).text());" +
      "console.log((await Promise.all(answers)).join());",
    { DOCSTOKG_RLIMITS: "127.0.0.1:metadata=rates:2/200ms,guard_ms:0", DOCSTOKG_MAILTO: "you@example.org" },
    server.origin,
  );
  assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: "ok,ok,ok,ok,ok,ok\n", stderr: "" });
  const [first = 0, , third = 0] = server.arrivalsMs;
  assert.ok(third - first >= 199, `the third came ${third - first} ms after the first`);
  assert.match(server.requests[0]?.headers["user-agent"] ?? "", /^docstokg\/\S+ \(mailto:you@example\.org\)$/);
});

test("with --import and a policy that makes no sense, the program does not run impolitely: it does not run", async t => {
  const { code, stdout, stderr } = await run(t, "console.log('running')", {
    DOCSTOKG_RLIMITS: "127.0.0.1:metadata=rates:fast",
  });
  assert.equal(code, 2);
  assert.equal(stdout, "");
  assert.match(stderr, /^docstokg: DOCSTOKG_RLIMITS/);
});

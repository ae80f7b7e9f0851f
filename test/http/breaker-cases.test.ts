/** Failures that users reported, each with real servers. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { parse } from "yaml";
import { createHub } from "../../src/http/create-hub.ts";
import { loadPolicy } from "../../src/policy/load.ts";
import type { Role } from "../../src/policy/roles.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { hubFor, only, recordEvents, serve, until } from "./kit.ts";

for (const reason of ["Retry-After", "rolling window"] as const) {
  test(`after a cooldown (${reason}) calls resume with one trial call and double in each round`, async t => {
    const time = new FakeTime();
    const held: ServerResponse[] = [];
    let isDown = true;
    const server = await serve(t, (_, response) => {
      if (!isDown) held.push(response);
      else if (reason === "Retry-After") response.writeHead(429, { "retry-after": "60" }).end();
      else response.writeHead(503).end();
    });
    const hub = await hubFor(t, {
      time,
      random: () => 0,
      retry: false,
      cache: false,
      breakers: {
        defaults: { fail_max: 100 },
        advanced: { rolling_window: { threshold_failures: 3, cooldown_s: 60 }, ramp_up: { max_calls: 16 } },
      },
    });
    const failures = reason === "Retry-After" ? 1 : 3;
    for (let call = 0; call < failures; call += 1) await (await hub.fetch(server.origin)).text();
    isDown = false;
    let answered = 0;
    const calls = Array.from({ length: 50 }, async (_, number) => {
      const response = await hub.fetch(`${server.origin}/${number}`, { maxWaitMs: 600_000 });
      await response.text();
      answered += 1;
    });
    await until(() => hub.snapshot().waiting === 50);
    await time.advance(60_000);
    for (const step of [1, 2, 4, 8, 35]) {
      await until(() => held.length === step);
      // No further request arrives before an answer.
      for (let turn = 0; turn < 20; turn += 1) await new Promise(resolve => setImmediate(resolve));
      assert.equal(held.length, step);
      const sent = answered + step;
      for (const response of held.splice(0)) response.end("ok");
      await until(() => answered === sent);
    }
    await Promise.all(calls);
  });
}

test("the snapshot of a key counts calls that wait for an open circuit, and says when a new one could start", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.writeHead(503).end());
  const hub = await hubFor(t, { time, random: () => 0, retry: false, cache: false });
  for (let call = 0; call < 5; call += 1) await (await hub.fetch(server.origin)).text();
  await time.advance(5000);
  const calls = Array.from({ length: 34 }, (_, number) =>
    hub.fetch(`${server.origin}/${number}`, { maxWaitMs: 600_000 }).then(response => response.text()),
  );
  await until(() => hub.snapshot().waiting === 34);
  const [key] = hub.snapshot().keys;
  assert.equal(key?.waiting, 34);
  assert.equal(key?.estimatedWaitMs, 40_000);
  assert.deepEqual(key?.constraint, { kind: "breaker", owner: "127.0.0.1", limit: "open circuit (failures)" });
  const ended = Promise.allSettled(calls);
  await hub.destroy();
  await ended;
});

test("three concurrent 429 responses with Retry-After 600 are one event: the reset is not learned from them", async t => {
  const time = new FakeTime();
  const held: ServerResponse[] = [];
  const server = await serve(t, (_, response, number) => {
    if (number <= 3) held.push(response);
    else response.writeHead(503).end();
  });
  const hub = await hubFor(t, { time, random: () => 0, retry: false, cache: false });
  const events = recordEvents(hub);
  const calls = [1, 2, 3].map(async number => (await hub.fetch(`${server.origin}/${number}`)).text());
  await until(() => held.length === 3);
  for (const response of held) response.writeHead(429, { "retry-after": "600" }).end();
  await Promise.all(calls);
  await time.advance(600_000);
  for (let call = 0; call < 5; call += 1) {
    await (await hub.fetch(server.origin)).text();
    await time.advance(100);
  }
  assert.deepEqual(only(events, "breaker_reset_raised"), []);
  assert.equal(hub.snapshot().hosts[0]?.remainingMs, 44_900);
});

test("five 503 responses of one service open no circuit of another service on the same host", async t => {
  const server = await serve(t, (request, response) =>
    response.writeHead(request.url?.startsWith("/ols4") ? 503 : 200).end("ok"),
  );
  const hub = await createHub({
    env: {},
    retry: false,
    cache: false,
    network: { connectTo: [`www.ebi.ac.uk:80:127.0.0.1:${server.port}`] },
  });
  t.after(() => hub.destroy());
  const get = async (path: string) => {
    const response = await hub.fetch(`http://www.ebi.ac.uk${path}`, { maxWaitMs: 60_000, maxBreakerWaitMs: 0 });
    await response.text();
    return response.status;
  };
  for (let call = 0; call < 5; call += 1) assert.equal(await get(`/ols4/api/${call}`), 503);
  await assert.rejects(get("/ols4/api/6"), { name: "BreakerOpenError" });
  assert.equal(await get("/europepmc/webservices/rest/search"), 200);
});

test("all hosts of a service have its shipped breaker numbers, and no listed host is looser for files than an unknown host", async () => {
  const { breakers } = await loadPolicy({ env: {} });
  const { resolved } = breakers;
  const numbers = (host: string, path?: string, role: Role = "metadata") => {
    const { failMax, resetUs } = resolved.circuit(resolved.route(host, path).circuit, role);
    return [failMax, resetUs / 1e6];
  };
  assert.deepEqual(numbers("www.ebi.ac.uk", "/europepmc/webservices/rest/search"), [5, 60]);
  assert.deepEqual(numbers("europepmc.org"), [5, 60]);
  assert.deepEqual(numbers("api.archives-ouvertes.fr"), [4, 120]);
  assert.deepEqual(numbers("hal.science"), [4, 120]);
  const [failMax = 0, resetS = 0] = numbers("unknown.example", "/", "artifact");
  const text = readFileSync(new URL("../../configs/networking/breakers.yaml", import.meta.url), "utf8");
  const shipped = parse(text) as { readonly hosts: object; readonly services: object };
  const units = [...Object.keys(shipped.hosts), ...Object.keys(shipped.services).map(name => `service ${name}`)];
  assert.ok(units.length > 15);
  for (const unit of units) {
    const policy = resolved.circuit(unit, "artifact");
    assert.ok(policy.failMax <= failMax && policy.resetUs / 1e6 >= resetS, unit);
  }
});

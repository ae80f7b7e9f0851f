import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { test } from "node:test";
import { exampleSource } from "../../test/dashboard/example-source.ts";
import { dashboardFor, listen, withToken } from "../../test/dashboard/served-dashboard.ts";
import { hubFor, serve } from "../../test/http/kit.ts";
import { StoreError } from "../errors.ts";
import { createDashboard, dashboardOf } from "./dashboard.ts";
import type { DashboardState } from "./dashboard-state.ts";
import type { PerformedAction } from "./performed-action.ts";

test("the page is served with the token of the address, which becomes a strict cookie", async t => {
  const { dashboard, origin } = await dashboardFor(t);
  const refused = await fetch(`${origin}/`);
  assert.equal(refused.status, 403);
  assert.match(await refused.text(), /open the address that the dashboard has printed/);
  const page = await fetch(withToken(dashboard, origin, "/"));
  assert.equal(page.status, 200);
  const cookie = page.headers.get("set-cookie") ?? "";
  assert.match(cookie, /^docstokg-[0-9a-f]{12}=\w+; Path=\/; HttpOnly; SameSite=Strict$/);
  const [pair = ""] = cookie.split(";");
  const script = await fetch(`${origin}/main.js`, { headers: { cookie: pair } });
  assert.equal(script.headers.get("content-type"), "text/javascript; charset=utf-8");
  assert.equal((await fetch(`${origin}/main.js`)).status, 403);
});

test("every response forbids inline scripts, foreign resources, frames and caching", async t => {
  const { dashboard, origin } = await dashboardFor(t);
  for (const path of ["/", "/main.js", "/state", "/nothing"]) {
    const { headers } = await fetch(withToken(dashboard, origin, path));
    const policy = headers.get("content-security-policy") ?? "";
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.equal(headers.get("cache-control"), "no-store");
    assert.equal(headers.get("referrer-policy"), "no-referrer");
  }
});

test("only the files of the page are served", async t => {
  const { dashboard, origin } = await dashboardFor(t);
  for (const path of [
    "/../package.json",
    "/..%2fpackage.json",
    "/%2e%2e/dashboard.js",
    "/main.ts",
    "//main.js",
    "/main.js/",
  ]) {
    const [, port = ""] = /:(\d+)$/.exec(origin) ?? [];
    // Not by fetch, which would resolve the dots.
    const sent = request({ host: "127.0.0.1", port, path: `${path}?token=${dashboard.token}` });
    sent.end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.resume();
    assert.equal(response.statusCode, 404, path);
  }
});

test("the policy of a host is served with the source of each value", async t => {
  const { dashboard, origin } = await dashboardFor(t);
  const read = (query: string) => fetch(withToken(dashboard, origin, `/policy?${query}`));
  const values = (await (await read("name=a.example&role=metadata")).json()) as { field: string; sources: object[] }[];
  const rates = values.find(({ field }) => field === "rates");
  assert.deepEqual(rates?.sources.at(-1), {
    where: "policy.ratelimits",
    path: "defaults.metadata.rates",
    value: "10/SECOND",
  });
  assert.equal((await read("name=resolver%20landing_page")).status, 200);
  const badRole = await read("name=a.example&role=owner");
  assert.equal(badRole.status, 400);
  assert.match(await badRole.text(), /owner/);
  assert.equal((await read("name=%00")).status, 400);
});

test("an operator stops, holds, releases and limits hosts of the hub, and each action is an event and a call of onAction", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const performed: PerformedAction[] = [];
  const { hub, dashboard, origin } = await dashboardFor(t, { onAction: action => performed.push(action) });
  const send = async () => (await hub.fetch(server.origin, { maxWaitMs: 0, cache: "no-store" })).status;
  assert.equal(await send(), 200);
  const read = async () => (await (await fetch(withToken(dashboard, origin, "/state"))).json()) as DashboardState;
  const { about } = await read();
  assert.deepEqual(about.actions, ["open", "close", "half-open", "hold", "release", "set-limit", "reset-limit"]);
  const act = async (order: object) => {
    const headers = { "content-type": "application/json", origin, "x-docstokg-action": about.actionToken };
    const body = JSON.stringify({ host: "127.0.0.1", reason: "test", ...order });
    const response = await fetch(withToken(dashboard, origin, "/actions"), { method: "POST", headers, body });
    return response.text();
  };
  assert.equal(await act({ action: "open", seconds: 60 }), '{"isApplied":true,"text":"applied by this process"}');
  await assert.rejects(send(), { code: "DOCSTOKG_BREAKER_OPEN" });
  assert.equal((await read()).hosts[0]?.reason, "opened by operator: test");
  await act({ action: "close", seconds: 60 });
  assert.equal(await send(), 200);
  await act({ action: "open", seconds: 60, role: "landing" });
  assert.equal(await send(), 200);
  await act({ action: "hold", seconds: 60, role: "metadata" });
  await assert.rejects(send(), { code: "DOCSTOKG_RATE_LIMITED" });
  await act({ action: "release", role: "metadata" });
  assert.equal(await send(), 200);
  const limit = { action: "set-limit", seconds: 60, role: "metadata" };
  assert.match(await act({ ...limit, rates: "fast" }), /^400: "fast" is not a rate/);
  assert.match(await act({ ...limit, rates: "1000/SECOND" }), /^400: 1000\/SECOND is looser than/);
  assert.match(await act({ ...limit, rates: "1/DAY", force: "yes" }), /^400: force must be true or false/);
  await act({ ...limit, rates: "1/DAY" });
  await assert.rejects(send(), { code: "DOCSTOKG_RATE_LIMITED" });
  const { order } = (await read()).hosts[0]?.keys[0] ?? {};
  assert.deepEqual(
    [order?.limits, order?.by, order?.reason, order?.isLooser],
    ["1/DAY", "dashboard, 127.0.0.1", "test", false],
  );
  await act({ action: "reset-limit" });
  assert.equal(await send(), 200);
  const total = { action: "set-limit", seconds: 60, role: "total" };
  assert.match(await act(total), /^400: an order needs rates, such as 2\/SECOND, or max_concurrent/);
  assert.match(await act({ ...total, maxConcurrent: "2" }), /^400: maxConcurrent must be a number, not "2"/);
  assert.match(
    await act({ ...total, action: "hold" }),
    /^400: unknown role "total"; expected metadata, landing, artifact/,
  );
  await act({ ...total, rates: "1/DAY", maxConcurrent: 2 });
  await assert.rejects(send(), { code: "DOCSTOKG_RATE_LIMITED" });
  const { totalOrder } = (await read()).hosts[0]?.keys[0] ?? {};
  assert.deepEqual(
    [totalOrder?.owner, totalOrder?.limits, totalOrder?.policyLimits],
    ["127.0.0.1", "1/DAY, max_concurrent 2", ""],
  );
  await act({ action: "reset-limit" });
  assert.equal(await send(), 200);
  assert.deepEqual(
    performed.map(({ action, target, seconds, reason, from }) => `${action} ${target} ${seconds} ${reason} ${from}`),
    [
      "open 127.0.0.1 60 test 127.0.0.1",
      "close 127.0.0.1 0 test 127.0.0.1",
      "open 127.0.0.1 (landing) 60 test 127.0.0.1",
      "hold 127.0.0.1 (metadata) 60 test 127.0.0.1",
      "release 127.0.0.1 (metadata) 0 test 127.0.0.1",
      "set-limit 127.0.0.1 (metadata) 60 test 127.0.0.1",
      "reset-limit 127.0.0.1 0 test 127.0.0.1",
      "set-limit 127.0.0.1 (total) 60 test 127.0.0.1",
      "reset-limit 127.0.0.1 0 test 127.0.0.1",
    ],
  );
  const operator = (await read()).events.filter(({ type }) => type === "operator").map(({ text }) => text);
  assert.equal(operator[0], "opened for 60 s by an operator (127.0.0.1): test; applied by this process");
  assert.equal(operator[5], "limit set to 1/DAY for 60 s by an operator (127.0.0.1): test; applied by this process");
  assert.equal(
    operator[7],
    "limit set to 1/DAY, max_concurrent 2 for 60 s by an operator (127.0.0.1): test; applied by this process",
  );
  assert.equal(operator.length, 9);
});

test("a secret in the reason of an operator reaches neither the page nor onAction", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const performed: PerformedAction[] = [];
  const { hub, dashboard, origin } = await dashboardFor(t, { onAction: action => performed.push(action) });
  await (await hub.fetch(server.origin)).text();
  const read = async () => (await fetch(withToken(dashboard, origin, "/state"))).text();
  const { about } = JSON.parse(await read()) as DashboardState;
  const headers = { "content-type": "application/json", origin, "x-docstokg-action": about.actionToken };
  const orders = [
    { action: "open", seconds: 60 },
    { action: "close" },
    { action: "hold", seconds: 60, role: "metadata" },
    { action: "release", role: "metadata" },
    { action: "set-limit", seconds: 60, role: "metadata", rates: "1/DAY" },
    { action: "reset-limit" },
  ];
  for (const order of orders) {
    const body = JSON.stringify({ host: "127.0.0.1", reason: "their api_key=hunter2 is blocked", ...order });
    const response = await fetch(withToken(dashboard, origin, "/actions"), { method: "POST", headers, body });
    assert.equal(response.status, 200, await response.text());
    assert.doesNotMatch(await read(), /hunter2/, order.action);
  }
  assert.deepEqual(new Set(performed.map(({ reason }) => reason)), new Set(["their api_key=… is blocked"]));
  assert.equal(performed.length, orders.length);
});

test("an action that the store does not take is answered with the reason, and is not logged as done", async t => {
  const performed: PerformedAction[] = [];
  const source = exampleSource();
  const run = async () => {
    throw new StoreError("redis at redis://me:hunter2@127.0.0.1:1: connect ECONNREFUSED");
  };
  const actions = { names: source.actions?.names ?? [], run };
  const dashboard = dashboardOf({ ...source, actions }, { onAction: action => performed.push(action) });
  t.after(() => dashboard.close());
  const origin = await listen(t, dashboard);
  const state = (await (await fetch(withToken(dashboard, origin, "/state"))).json()) as DashboardState;
  const headers = { "content-type": "application/json", origin, "x-docstokg-action": state.about.actionToken };
  const body = JSON.stringify({ action: "close", host: state.hosts[0]?.name, reason: "test" });
  const response = await fetch(withToken(dashboard, origin, "/actions"), { method: "POST", headers, body });
  assert.equal(response.status, 503);
  assert.equal(await response.text(), "503: redis at redis://…@127.0.0.1:1: connect ECONNREFUSED\n");
  assert.deepEqual(performed, []);
});

for (const [kind, onAction] of [
  [
    "throws",
    () => {
      throw new Error("audit of redis://me:hunter2@127.0.0.1 failed");
    },
  ],
  ["rejects", async () => Promise.reject(new Error("audit of redis://me:hunter2@127.0.0.1 failed"))],
] as const)
  test(`if onAction ${kind}, the page says that the action was applied and that the application may not have logged it`, async t => {
    const server = await serve(t, (_, response) => response.end("ok"));
    const { hub, dashboard, origin } = await dashboardFor(t, { onAction });
    await (await hub.fetch(server.origin)).text();
    const read = async () => (await (await fetch(withToken(dashboard, origin, "/state"))).json()) as DashboardState;
    const { about } = await read();
    const headers = { "content-type": "application/json", origin, "x-docstokg-action": about.actionToken };
    const body = JSON.stringify({ action: "open", host: "127.0.0.1", seconds: 60, reason: "test" });
    const response = await fetch(withToken(dashboard, origin, "/actions"), { method: "POST", headers, body });
    const problem =
      "onAction of the application failed, so its log may lack this action: audit of redis://…@127.0.0.1 failed";
    assert.equal(response.status, 200);
    assert.deepEqual(await response.json(), { isApplied: true, text: `applied by this process; ${problem}` });
    assert.equal(hub.breakers.state("127.0.0.1").state, "open");
    const lines = (await read()).events.filter(({ type }) => type === "operator");
    assert.deepEqual(
      lines.map(({ text, level }) => [level, text]),
      [
        ["info", "opened for 60 s by an operator (127.0.0.1): test; applied by this process"],
        ["bad", `open 127.0.0.1: ${problem}`],
      ],
    );
  });

test("the handler works below a path, with and without a framework that removes it", async t => {
  const { dashboard, origin } = await dashboardFor(t, { basePath: "/ops/live" });
  const page = await fetch(withToken(dashboard, origin, "/ops/live"));
  assert.equal(new URL(page.url).pathname, "/ops/live/");
  assert.equal(page.status, 200);
  for (const path of ["/main.js", "/ops/live-main.js", "/ops/livexmain.js"])
    assert.equal((await fetch(withToken(dashboard, origin, path))).status, 404, path);

  const { dashboard: mounted } = await dashboardFor(t);
  const express = await listen(t, (message, response) => {
    const original = message.url ?? "";
    const url = original.replace(/^\/ops/, "").replace(/^(?!\/)/, "/");
    mounted(Object.assign(message, { originalUrl: original, url }), response);
  });
  const below = await fetch(withToken(mounted, express, "/ops"));
  assert.equal(new URL(below.url).pathname, "/ops/");
  assert.equal((await fetch(withToken(mounted, express, "/ops/main.js"))).status, 200);
});

test("a path that a browser would take for another host is not redirected there", async t => {
  const { dashboard, origin } = await dashboardFor(t, { basePath: "/ops" });
  const path = `/\\evil.example\\..\\..\\ops?token=${dashboard.token}`;
  const sent = request(origin, { path }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.resume();
  assert.equal(response.statusCode, 302);
  assert.equal(new URL(response.headers.location ?? "", origin).origin, origin);
});

test("an action is carried out if the framework has read its body, and passes it as a value or text", async t => {
  const dashboard = dashboardOf(exampleSource(), {});
  t.after(() => dashboard.close());
  let given: (text: string) => unknown = () => undefined;
  const origin = await listen(t, async (message, response) => {
    const text = message.method === "POST" ? await textOf(message) : "";
    dashboard(Object.assign(message, { body: given(text) }), response);
  });
  const state = (await (await fetch(withToken(dashboard, origin, "/state"))).json()) as DashboardState;
  const headers = { "content-type": "application/json", origin, "x-docstokg-action": state.about.actionToken };
  const body = JSON.stringify({ action: "close", host: state.hosts[0]?.name, reason: "test" });
  const act = async () => {
    const response = await fetch(withToken(dashboard, origin, "/actions"), { method: "POST", headers, body });
    return [response.status, await response.text()];
  };
  const applied = [200, JSON.stringify({ isApplied: true, text: "applied by 3 of 3 processes" })];
  for (const parse of [JSON.parse, String, Buffer.from] as const) {
    given = parse;
    assert.deepEqual(await act(), applied, parse.name);
  }
  given = () => undefined;
  assert.deepEqual(await act(), [
    400,
    "400: the body was read before the dashboard was called: pass it as request.body\n",
  ]);
});

test("an action whose body is truncated or too large changes nothing", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const { hub, dashboard, origin } = await dashboardFor(t);
  await (await hub.fetch(server.origin)).text();
  const { about } = (await (await fetch(withToken(dashboard, origin, "/state"))).json()) as DashboardState;
  const headers = { "content-type": "application/json", origin, "x-docstokg-action": about.actionToken };
  const cut = request(withToken(dashboard, origin, "/actions"), {
    method: "POST",
    headers: { ...headers, "content-length": 5000 },
  });
  cut.on("error", () => undefined);
  cut.write('{"action":"open","host":"127.0.0.1","seconds":60,"reason":"x"}');
  await new Promise(resolve => setImmediate(resolve));
  cut.destroy();
  const huge = await fetch(withToken(dashboard, origin, "/actions"), {
    method: "POST",
    headers,
    body: " ".repeat(1_000_000),
  }).then(
    response => response.status,
    // The server may close the connection before the whole body is sent.
    () => 400,
  );
  assert.equal(huge, 400);
  assert.equal((await hub.fetch(server.origin, { cache: "no-store" })).status, 200);
});

test("unknown options and invalid values are refused: a misspelled readOnly would permit every change", async t => {
  const hub = await hubFor(t);
  const refused: readonly (readonly [object, RegExp])[] = [
    [{ isReadOnly: true }, /^unknown option isReadOnly of createDashboard: did you mean readOnly\?$/],
    [{ readOnly: "false" }, /^readOnly must be true or false, not "false"$/],
    [{ token: "secret" }, /^token must have at least 16 characters/],
    [{ token: null }, /^token must have at least 16 characters/],
    [{ basePath: "ops" }, /^basePath must be a path such as "\/ops", not "ops"$/],
    [{ onAction: "log" }, /^onAction must be a function, not "log"$/],
    [{ hosts: "localhost" }, /^hosts must be "any" or a list of host names, not "localhost"$/],
    [{ hosts: [] }, /^hosts must be "any" or a list of host names, not \[\]$/],
    [{ hosts: ["ops.example.org:8443"] }, /^hosts must be names without a port, .* not "ops\.example\.org:8443"$/],
    [{ hosts: ["::1"] }, /^hosts must be names without a port, such as "ops\.example\.org" or "\[::1\]", not "::1"$/],
  ];
  for (const [options, message] of refused)
    assert.throws(() => createDashboard(hub, options), { name: "RangeError", message }, JSON.stringify(options));
});

test("the names of hosts may be written in any case, and in Unicode", async t => {
  const { dashboard, origin } = await dashboardFor(t, { hosts: ["OPS.example.org", "m\u{fc}nchen.example", "[::1]"] });
  const [, port] = /:(\d+)$/.exec(origin) ?? [];
  const statusAt = async (host: string) => {
    const sent = request({ ...{ host: "127.0.0.1", port }, path: `/?token=${dashboard.token}`, headers: { host } });
    sent.end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.resume();
    return response.statusCode;
  };
  for (const host of ["ops.example.org", "xn--mnchen-3ya.example:8443", "[::1]:8443"])
    assert.equal(await statusAt(host), 200, host);
  assert.equal(await statusAt("127.0.0.1"), 403);
});

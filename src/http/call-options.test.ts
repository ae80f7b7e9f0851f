import assert from "node:assert/strict";
import { get, type IncomingMessage } from "node:http";
import { type TestContext, test } from "node:test";
import { request } from "undici";
import { hubFor, only, recordEvents, serve } from "../../test/http/kit.ts";
import type { CallOptions } from "./call-options.ts";
import { createHub } from "./create-hub.ts";
import type { Hub } from "./hub.ts";

test("invalid values of maxRedirections and deadlineMs are errors, and nothing is sent", async t => {
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t);
  for (const maxRedirections of [-1, 1.5, Number.NaN]) {
    await assert.rejects(hub.request(server.origin, { maxRedirections }), /maxRedirections must be a whole number/);
  }
  await assert.rejects(hub.request(server.origin, { deadlineMs: Number.NaN }), /deadlineMs must be a number above 0/);
  assert.equal(server.requests.length, 0);
});

test("a call with invalid options is an error, and nothing is sent", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t);
  await assert.rejects(hub.request(server.origin, { deadlineMs: 0 }), /deadlineMs must be a number above 0/);
  await assert.rejects(
    hub.request(server.origin, { maxWaitMs: -1 }),
    /maxWaitMs must be a number of at least 0, not -1/,
  );
  await assert.rejects(
    hub.request(server.origin, { weight: 1.5 }),
    /weight must be an integer of at least 1, not 1\.5/,
  );
  await assert.rejects(
    hub.request(server.origin, { role: "nobody" as never }),
    /role must be one of metadata, landing, artifact, not "nobody"/,
  );
  await assert.rejects(hub.fetch("ftp://example.org/"));
  assert.equal(server.requests.length, 0);
  assert.equal(hub.snapshot().calls, 0);
  await assert.rejects(
    createHub({ env: {}, retry: { attempts: 0 } }),
    /retry.attempts must be a whole number of at least 1/,
  );
  await assert.rejects(createHub({ env: {}, cache: "disk" as never }), /cache must be/);
});

type Send = (hub: Hub, url: string, call: Pick<CallOptions, "role" | "resolver">, t: TestContext) => Promise<unknown>;

const statusOf = async (sent: ReturnType<Hub["request"]>) => {
  const { statusCode, body } = await sent;
  await body.dump();
  return statusCode;
};

/** Where call options can be given, each inside the defaults of the hub. */
const LEVELS: Readonly<Record<string, Send>> = {
  "hub.request": (hub, url, call) => statusOf(hub.request(url, call)),
  "hub.fetch": async (hub, url, call) => (await hub.fetch(url, call)).text(),
  "hub.with": (hub, url, call) => hub.with(call, () => statusOf(hub.request(url))),
  "hub.dispatcher": (hub, url, call) => statusOf(request(url, { dispatcher: hub.dispatcher(call) })),
  "hub.install": async (hub, url, call, t) => {
    const uninstall = hub.install(call);
    t.after(uninstall);
    await (await fetch(url)).text();
    uninstall();
  },
  "hub.agents": (hub, url, call, t) => {
    const { http: agent } = hub.agents(call);
    t.after(() => agent.destroy());
    return new Promise((resolve, reject) => {
      const answered = (response: IncomingMessage) => response.resume().on("end", resolve);
      get(url, { agent }, answered).on("error", reject);
    });
  },
};

for (const [level, send] of Object.entries(LEVELS))
  test(`an option that is undefined in ${level} leaves that of the outer level in force`, async t => {
    const server = await serve(t, (_, response) => response.end("ok"));
    const hub = await hubFor(t, { cache: false, defaults: { role: "landing", resolver: "finder" } });
    const events = recordEvents(hub);
    await send(hub, server.origin, { role: undefined, resolver: undefined }, t);
    assert.deepEqual(
      only(events, "http_attempt").map(({ role, resolver }) => [role, resolver]),
      [["landing", "finder"]],
    );
  });

test("a partition holds inside a hub.with whose partition is undefined, and refusals where those of defaults are undefined", async t => {
  const server = await serve(t, (_, response) => response.setHeader("cache-control", "max-age=60").end("ok"));
  const hub = await hubFor(t, { refusals: "respond", defaults: { refusals: undefined } });
  const get = () => hub.with({ partition: undefined }, () => hub.request(server.origin));
  for (const partition of ["a", "b"]) {
    const { headers, body } = await hub.with({ partition }, get);
    await body.dump();
    assert.equal(headers["cache-status"], "docstokg; fwd=miss");
  }
  hub.breakers.open("127.0.0.1", { seconds: 60 });
  assert.equal(await statusOf(hub.request(server.origin, { maxWaitMs: 0 })), 503);
});

import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { dispatchActing } from "../../../test/http/handlers.ts";
import {
  assertNothingLeft,
  hubFor,
  only,
  recordEvents,
  serve,
  settles,
  type TestHubOptions,
  until,
} from "../../../test/http/kit.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { createHub } from "../create-hub.ts";

/** Recorded from eutils.ncbi.nlm.nih.gov, 2026-08. */
const NCBI = '{"error":"API rate limit exceeded","api-key":"203.0.113.1","count":"4","limit":"3"}';
/** docs.github.com/rest (rate limits), 2026-11. */
const GITHUB =
  '{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}';
const JSON_TYPE = { "content-type": "application/json" };
const RULE = { breakers: { defaults: { throttles: [{ status: [200], body: "API rate limit exceeded" }] } } };

type Answer = (response: ServerResponse, number: number) => void;

async function setUp(t: TestContext, answer: Answer, options: TestHubOptions = RULE) {
  const time = new FakeTime();
  const server = await serve(t, (_, response, number) => answer(response, number));
  const hub = await hubFor(t, { time, random: () => 0, retry: false, ...options });
  const events = recordEvents(hub);
  const get = async (init = {}) => {
    const response = await hub.fetch(server.origin, init);
    return [response.status, await response.text()];
  };
  const outcomes = () => only(events, "breaker_failure").length - only(events, "breaker_success").length;
  return { time, hub, server, events, get, outcomes };
}

/** A hub with the shipped policy whose requests to one host reach the test server. */
async function shippedHub(t: TestContext, host: string, answer: Answer) {
  const server = await serve(t, (_, response, number) => answer(response, number));
  const network = { connectTo: [`${host}:80:127.0.0.1:${server.port}`] };
  const hub = await createHub({ env: {}, time: new FakeTime(), retry: false, network });
  t.after(() => hub.destroy());
  const events = recordEvents(hub);
  const failure = async (path: string) => {
    await (await hub.fetch(`http://${host}${path}`, { maxWaitMs: 60_000 })).text();
    return only(events, "breaker_failure")[0];
  };
  return { hub, failure };
}

test("NCBI: a 200 with its throttle text is a throttle, by the shipped rules", async t => {
  const { failure } = await shippedHub(t, "eutils.ncbi.nlm.nih.gov", response =>
    response.writeHead(200, JSON_TYPE).end(NCBI),
  );
  assert.equal((await failure("/entrez/eutils/esummary.fcgi"))?.status, 200);
});

test("GitHub: a 403 with its throttle text is a throttle with a cooldown of a minute, by the shipped rules", async t => {
  const { failure } = await shippedHub(t, "api.github.com", response => response.writeHead(403, JSON_TYPE).end(GITHUB));
  assert.deepEqual(await failure("/repos/a/b").then(event => [event?.status, event?.cooldown_s]), [403, 60]);
});

test("a challenge of a firewall is a throttle of any host, by the shipped rules", async t => {
  for (const [status, headers] of [
    [403, { "cf-mitigated": "challenge" }],
    [202, { "x-amzn-waf-action": "challenge" }],
  ] as const) {
    const { failure } = await shippedHub(t, "any.example", response => response.writeHead(status, headers).end());
    assert.equal((await failure("/"))?.status, status);
  }
});

const ENCODED = {
  identity: Buffer.from(NCBI),
  gzip: gzipSync(NCBI),
  deflate: deflateSync(NCBI),
  br: brotliCompressSync(NCBI),
};
for (const [coding, bytes] of Object.entries(ENCODED)) {
  test(`the caller gets the complete body of a recognised throttle (${coding})`, async t => {
    const headers = { ...JSON_TYPE, ...(coding === "identity" ? {} : { "content-encoding": coding }) };
    const { get, outcomes } = await setUp(t, response => response.writeHead(200, headers).end(bytes));
    assert.deepEqual(await get(), [200, NCBI]);
    assert.equal(outcomes(), 1);
  });
}

test("a throttle with status 200 is retried, and neither stored nor served again", async t => {
  const headers = { ...JSON_TYPE, "cache-control": "max-age=60" };
  const { get, server } = await setUp(
    t,
    (response, number) => response.writeHead(200, headers).end(number < 3 ? NCBI : "{}"),
    {
      ...RULE,
      retry: { attempts: 2, baseMs: 0 },
      limits: { defaults: { metadata: { rates: "none" } } },
      time: undefined,
    },
  );
  assert.deepEqual(await get(), [200, NCBI]);
  assert.equal(server.requests.length, 2);
});

test("other bodies are delivered unchanged: long, in pieces, empty, of another type, and to HEAD", async t => {
  const long = JSON.stringify({ text: "x".repeat(100_000), error: "API rate limit exceeded" });
  const { hub, server, get, outcomes } = await setUp(t, (response, number) => {
    if (number === 1) response.writeHead(200, JSON_TYPE).end(long);
    else if (number === 2) {
      response.writeHead(200, JSON_TYPE).write('{"a":');
      setImmediate(() => response.end("1}"));
    } else if (number === 3) response.writeHead(200, JSON_TYPE).end();
    else response.writeHead(200, { "content-type": "application/pdf" }).end(NCBI);
  });
  assert.deepEqual(await get(), [200, long]);
  assert.deepEqual(await get(), [200, '{"a":1}']);
  assert.deepEqual(await get(), [200, ""]);
  assert.deepEqual(await get(), [200, NCBI]);
  assert.equal((await hub.fetch(server.origin, { method: "HEAD" })).status, 200);
  assert.equal(outcomes(), -5);
});

test("a body that says it is gzip and is not is no throttle, and reaches the caller as it is", async t => {
  const { hub, server, outcomes } = await setUp(t, response =>
    response.writeHead(200, { ...JSON_TYPE, "content-encoding": "gzip" }).end(NCBI),
  );
  const { body } = await hub.request(server.origin);
  assert.equal(await body.text(), NCBI);
  assert.equal(outcomes(), -1);
});

test("the call option outcome judges by status and headers, and its errors become warnings", async t => {
  const { get, events } = await setUp(t, response => response.writeHead(200, { "x-quota": "0" }).end("ok"), {});
  const outcome = ({ headers }: { readonly headers: Readonly<Record<string, unknown>> }) =>
    headers["x-quota"] === "0" ? ({ throttled: true, retryAfterMs: 5000 } as const) : undefined;
  assert.deepEqual(await get({ outcome }), [200, "ok"]);
  assert.equal(only(events, "breaker_cooldown_set")[0]?.reason, "retry-after");
  await assert.rejects(get({ outcome }), { name: "BreakerOpenError" });
});

test("an error of the call option outcome is a warning, and another value than a judgement too", async t => {
  const { get, outcomes } = await setUp(t, response => response.writeHead(200).end("ok"), {});
  const warned = () => new Promise<Error>(resolve => process.once("warning", resolve));
  const first = warned();
  await get({
    outcome: () => {
      throw new Error("a bug");
    },
  });
  assert.match((await first).message, /^the call option outcome failed: a bug; the policy classifies the response/);
  const second = warned();
  await get({ outcome: () => "great" as "success" });
  assert.match((await second).message, /expected "success", "failure".*found "great"/);
  assert.equal(outcomes(), -2);
  await assert.rejects(get({ outcome: "throttled" }), /outcome must be a function/);
});

test("a rule without header and body is an error that says where its status belongs", async t => {
  const breakers = { defaults: { throttles: [{ status: [500] }] } };
  await assert.rejects(hubFor(t, { breakers }), /throttles.*header or body: a status alone belongs to classify/);
});

/** Counts the heads that have arrived: a head that is held back reaches no caller. */
function countHeads(t: TestContext): { readonly count: number } {
  const heads = { count: 0 };
  const add = () => {
    heads.count += 1;
  };
  subscribe("undici:request:headers", add);
  t.after(() => unsubscribe("undici:request:headers", add));
  return heads;
}

test("a response whose short body arrives slowly is held back for a second, and judged by what has arrived", async t => {
  const { time, hub, server, events } = await setUp(t, (response, number) => {
    response.writeHead(200, JSON_TYPE).write(number === 1 ? "{" : NCBI);
  });
  const heads = countHeads(t);
  for (const failures of [0, 1]) {
    let status: number | undefined;
    const got = hub.request(`${server.origin}/${failures}`).then(response => {
      status = response.statusCode;
      return response;
    });
    await until(() => heads.count === failures + 1);
    await time.advance(999);
    assert.equal(status, undefined);
    await time.advance(1);
    const { body } = await settles(got);
    assert.equal(status, 200);
    assert.equal(only(events, "breaker_failure").length, failures);
    body.on("error", () => undefined).destroy();
    await until(() => hub.snapshot().inFlight === 0);
  }
  assertNothingLeft(hub, time);
});

test("a caller that pauses while its response is held back gets the head, and may resume then", async t => {
  let finish: () => unknown = assert.fail;
  const answer: Answer = response => {
    response.writeHead(200, JSON_TYPE).write("{");
    finish = () => response.end("}");
  };
  const { hub, server } = await setUp(t, answer, { ...RULE, cache: false });
  const heads = countHeads(t);
  const { lines, controller } = dispatchActing(hub, server.origin, "head", own => own.resume());
  await until(() => heads.count === 1);
  controller()?.pause();
  assert.ok(lines.includes("head 200"));
  finish();
  await until(() => lines.includes("end"));
});

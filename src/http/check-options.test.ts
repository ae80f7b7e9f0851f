import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent } from "undici";
import { ConfigError } from "../errors.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { checkFetchOptions, checkHubOptions, checkRequestOptions } from "./check-options.ts";
import { createHub } from "./create-hub.ts";

function problems(options: unknown): readonly string[] {
  try {
    checkHubOptions(options as object);
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.problems.map(({ path, message }) => `${path}: ${message}`);
  }
}

test("every unknown option of createHub is listed in one error, each with the option that was probably meant", () => {
  assert.deepEqual(
    problems({
      caches: false,
      network: { allowprivate: false },
      policy: { rateLimits: {} },
      retry: { attempt: 2 },
      defaults: { maxWait: 1 },
    }),
    [
      "caches: unknown option: did you mean cache?",
      "policy.rateLimits: unknown option: did you mean ratelimits?",
      "retry.attempt: unknown option: did you mean attempts?",
      "network.allowprivate: unknown option: did you mean allowPrivate?",
      "defaults.maxWait: unknown option: did you mean maxWaitMs?",
    ],
  );
});

test("a known option with an invalid value is an error", () => {
  assert.deepEqual(problems({ telemetry: () => undefined }), [
    "telemetry: expected a list of functions, found function",
  ]);
  assert.deepEqual(problems({ unreadBodyMs: "60" }), ['unreadBodyMs: expected a number above 0, found "60"']);
  assert.deepEqual(problems({ unreadBodyMs: Number.NaN }), ["unreadBodyMs: expected a number above 0, found NaN"]);
  assert.deepEqual(problems({ fleetSize: 2n, mailto: () => "me" }), [
    "fleetSize: expected a whole number of at least 1, found 2n",
    "mailto: expected a text, found a function",
  ]);
  assert.deepEqual(problems({ dispatcher: {} }), ["dispatcher: expected an undici Dispatcher, found object"]);
  assert.deepEqual(problems({ retry: false }), []);
  assert.deepEqual(problems({ policy: false, network: false, defaults: false }), [
    "policy: expected an object, found false",
    "network: expected an object, found false",
    "defaults: expected an object, found false",
  ]);
  assert.deepEqual(problems({ retry: true }), ["retry: expected an object, found true"]);
  assert.deepEqual(problems("x"), [': expected an object, found "x"']);
  assert.deepEqual(problems(false), [": expected an object, found false"]);
  assert.deepEqual(problems(null), [": expected an object, found null"]);
});

test("a text or number where true, false or a time is expected is an error, because it would protect nothing", () => {
  assert.deepEqual(
    problems({
      crawlDelay: "x",
      userAgent: 5,
      network: { allowPrivate: "false", connectTimeoutMs: Number.NaN, headersTimeoutMs: -1 },
      defaults: { cacheLifetimeMs: -1, maxWaitMs: "x", role: "meta", weight: Number.NaN },
    }),
    [
      'defaults.role: role must be one of metadata, landing, artifact, not "meta"',
      "defaults.weight: weight must be an integer of at least 1, not NaN",
      'defaults.maxWaitMs: maxWaitMs must be a number of at least 0, not "x"',
      "defaults.cacheLifetimeMs: cacheLifetimeMs must be a number of at least 0, not -1",
      'network.allowPrivate: expected true or false, found "false"',
      'crawlDelay: expected true or false, found "x"',
      "network.headersTimeoutMs: expected a number of at least 0, found -1",
      "network.connectTimeoutMs: expected a number of at least 0, found NaN",
      "userAgent: expected a text, found 5",
    ],
  );
});

test("an option of createHub with a value of another type is an error that names it", () => {
  assert.deepEqual(
    problems({
      time: Date,
      random: 4,
      network: { connectTo: "a.example:443:127.0.0.1:8443", lookup: "dns" },
    }),
    [
      'network.connectTo: expected a list such as ["example.org:443:127.0.0.1:8443"], found "a.example:443:127.0.0.1:8443"',
      'network.lookup: expected a function, found "dns"',
      "random: expected a function, found 4",
      "time: expected a clock with the methods of Time, such as a FakeTime, found a function",
    ],
  );
  assert.deepEqual(problems([]), [": expected an object, found a list"]);
  assert.deepEqual(problems({ policy: [], time: new FakeTime(), random: Math.random }), [
    "policy: expected an object, found a list",
  ]);
});

test("network options together with a dispatcher are an error, because they would have no effect", () => {
  const dispatcher = { dispatch: () => true };
  assert.match(
    problems({ dispatcher, network: { allowPrivate: false } }).join(),
    /network: has no effect when dispatcher is given/,
  );
});

test("an unknown option of a call is an error that names the method and the option that was probably meant", async t => {
  const hub = await createHub({ env: {}, retry: false });
  t.after(() => hub.destroy());
  const typo = { maxWait: 5 } as object;
  const problem = (where: string) => ({
    name: "ConfigError",
    message: `${where}: maxWait: unknown option: did you mean maxWaitMs?`,
  });
  assert.throws(() => hub.dispatcher(typo), problem("hub.dispatcher"));
  assert.throws(() => hub.with(typo, () => undefined), problem("hub.with"));
  assert.throws(() => hub.install(typo), problem("hub.install"));
  await assert.rejects(hub.fetch("http://127.0.0.1:9/", typo), problem("hub.fetch"));
  await assert.rejects(hub.request("http://127.0.0.1:9/", typo), problem("hub.request"));
  await assert.rejects(hub.reload({ rateLimits: {} } as object), {
    name: "ConfigError",
    message: "hub.reload: rateLimits: unknown option: did you mean ratelimits?",
  });
  await assert.rejects(hub.request("http://127.0.0.1:9/", { maxWaitMs: "5" as never }), /maxWaitMs must be a number/);
});

test("every option of WHATWG fetch is accepted by hub.fetch, and every option of undici.request by hub.request", () => {
  const signal = new AbortController().signal;
  const common = { method: "GET", headers: {}, body: null, signal, dispatcher: undefined };
  checkFetchOptions({
    ...common,
    cache: "no-store",
    credentials: "omit",
    duplex: "half",
    integrity: "",
    keepalive: true,
    mode: "cors",
    priority: "high",
    redirect: "follow",
    referrer: "",
    referrerPolicy: "",
    window: null,
    role: "artifact",
  });
  checkRequestOptions({ ...common, query: {}, headersTimeout: 1, bodyTimeout: 1, opaque: {}, onInfo: null, weight: 2 });
});

test("an unknown option that is undefined or inherited is accepted, because libraries pass on options that callers left out", () => {
  checkFetchOptions({ agent: undefined });
  checkFetchOptions(Object.create({ agent: {} }));
  assert.throws(
    () => checkRequestOptions({ agent: {} }),
    /hub\.request: agent: unknown option: the options are method, /,
  );
});

test("an object with only a dispatch function is accepted as dispatcher, and closing the hub removes its listeners from it", async () => {
  const bare = await createHub({ env: {}, dispatcher: { dispatch: () => true } as never });
  await bare.close();
  const wire = new Agent();
  const hub = await createHub({ env: {}, dispatcher: wire });
  await hub.close();
  assert.equal(wire.listenerCount("connect"), 0);
  await wire.close();
});

test("hub.fetch ignores options that libraries pass to any fetch, and refuses a mistyped call option", () => {
  checkFetchOptions({
    agent: {},
    retry: 2,
    errorPolicy: "none",
    timeout: 5,
    responseType: "json",
    baseURL: "",
    next: {},
  });
  assert.throws(() => checkFetchOptions({ agent: {}, maxWait: 5 }), {
    message: "hub.fetch: maxWait: unknown option: did you mean maxWaitMs?",
  });
  assert.throws(() => checkFetchOptions({ Role: "landing" }), /did you mean role\?/);
});

test("wrong costs are refused where they are given, not by the first call", async () => {
  const time = new FakeTime();
  const costs = { credits: "a" as unknown as number };
  const message = "costs.credits must be an integer of at least 0, got a";
  assert.deepEqual(problems({ defaults: { costs } }), [`defaults.costs: ${message}`]);
  assert.deepEqual(problems({ defaults: { costs: { credits: 1.5, tokens: 2 } } }), [
    "defaults.costs: costs.credits must be an integer of at least 0, got 1.5",
  ]);
  assert.deepEqual(problems({ defaults: { costs: [10] } }), [
    "defaults.costs: costs must be an object such as { credits: 10 }, not 10",
  ]);
  await using hub = await createHub({ time });
  const expected = { name: "ConfigError", message: new RegExp(message.replaceAll(".", "\\.")) };
  assert.throws(() => hub.with({ costs }, () => undefined), expected);
  assert.throws(() => hub.dispatcher({ costs }), expected);
  assert.throws(() => hub.agents({ costs }), expected);
  assert.throws(() => hub.install({ costs }), expected);
});

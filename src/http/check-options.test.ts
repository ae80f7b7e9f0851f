import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent } from "undici";
import { ConfigError } from "../errors.ts";
import { checkHubOptions } from "./check-options.ts";
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

test("an option that a hub does not have is an error that says what was probably meant, all of them at once", () => {
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

test("what is known but makes no sense is an error, too", () => {
  assert.deepEqual(problems({ telemetry: () => undefined }), ["telemetry: expected a list of functions"]);
  assert.deepEqual(problems({ unreadBodyMs: "60" }), ['unreadBodyMs: expected a number above 0, found "60"']);
  assert.deepEqual(problems({ dispatcher: {} }), ["dispatcher: expected a dispatcher of undici"]);
  assert.deepEqual(problems({ retry: true }), ["retry: expected an object, found true"]);
  assert.deepEqual(problems("x"), [': expected an object, found "x"']);
});

test("a guard that would not apply is not taken silently", () => {
  const dispatcher = { dispatch: () => true };
  assert.match(problems({ dispatcher, network: { allowPrivate: false } }).join(), /network: does not apply/);
});

test("calls, views and reloads are checked the same way", async t => {
  const hub = await createHub({ env: {}, retry: false });
  t.after(() => hub.destroy());
  const typo = { maxWait: 5 } as object;
  assert.throws(() => hub.dispatcher(typo), ConfigError);
  assert.throws(() => hub.with(typo, () => undefined), ConfigError);
  assert.throws(() => hub.install(typo), ConfigError);
  await assert.rejects(hub.reload({ rateLimits: {} } as object), ConfigError);
  await assert.rejects(hub.request("http://127.0.0.1:9/", { maxWaitMs: "5" as never }), /maxWaitMs must be a number/);
});

test("a wire that is nothing but a dispatch function will do, and a hub leaves no listener on one that it was handed", async () => {
  const bare = await createHub({ env: {}, dispatcher: { dispatch: () => true } as never });
  await bare.close();
  const wire = new Agent();
  const hub = await createHub({ env: {}, dispatcher: wire });
  await hub.close();
  assert.equal(wire.listenerCount("connect"), 0);
  await wire.close();
});

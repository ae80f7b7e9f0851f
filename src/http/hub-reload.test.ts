import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { only, recordEvents, serve } from "../../test/http/kit.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { ConfigError } from "../errors.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { createHub } from "./create-hub.ts";
import type { HubOptions } from "./hub-options.ts";

const HOST = "api.example.org";

async function openHub(t: TestContext, options: HubOptions = {}) {
  const hub = await createHub({ env: {}, ...options });
  t.after(() => hub.destroy());
  return hub;
}

const limits = (rates: string, more: RatelimitsOptions = {}) => ({
  ratelimits: { hosts: { [HOST]: { metadata: { rates } } }, ...more },
});

test("a reload that changes the store is refused with the option and both stores, and changes nothing", async t => {
  const folder = temporaryFolder("reload");
  const file = join(folder, "limits.db");
  const hub = await openHub(t, { policy: limits("1/SECOND") });
  const events = recordEvents(hub);
  const before = hub.configHash;
  await assert.rejects(hub.reload(limits("2/SECOND", { backend: { kind: "sqlite", dsn: file } })), {
    name: "ConfigError",
    message:
      `policy.ratelimits: backend: changed from memory to sqlite:${file}, but a running hub cannot change its store; ` +
      "restore the old value, or restart the program",
  });
  await assert.rejects(
    hub.reload({ breakers: { advanced: { cooldown_store: { backend: "sqlite", dsn: file } } } }),
    /^ConfigError: policy\.breakers: advanced\.cooldown_store: changed from none to sqlite:/,
  );
  assert.equal(hub.configHash, before);
  assert.equal(hub.policyFor(HOST).rates, "1/SECOND");
  assert.equal(only(events, "policy_rejected").length, 2);
  assert.equal(only(events, "policy_changed").length, 0);
});

test("a reload may name the same store in another way, and a store given to createHub decides alone", async t => {
  const folder = temporaryFolder("reload");
  const file = join(folder, "limits.db");
  const hub = await openHub(t, { policy: limits("1/SECOND", { backend: { kind: "sqlite", dsn: file } }) });
  await hub.reload(limits("2/SECOND", { backend: { kind: "sqlite", dsn: join(folder, ".", "x", "..", "limits.db") } }));
  assert.equal(hub.policyFor(HOST).rates, "2/SECOND");
  const fixed = await openHub(t, { store: "memory", policy: limits("1/SECOND") });
  await fixed.reload(limits("2/SECOND", { backend: { kind: "sqlite", dsn: file } }));
  assert.equal(fixed.policyFor(HOST).rates, "2/SECOND");
});

test("a reload that changes only the password of the store is refused, and no message shows a password", async t => {
  const withPassword = (password: string) =>
    limits("1/SECOND", { backend: { kind: "redis", dsn: `redis://user:${password}@127.0.0.1:1` } });
  const hub = await openHub(t, { policy: withPassword("first") });
  const events = recordEvents(hub);
  await assert.rejects(hub.reload(withPassword("second")), (error: Error) => {
    assert.match(error.message, /backend: the credentials of redis:\/\/…@127\.0\.0\.1:1 changed/);
    return true;
  });
  assert.doesNotMatch(JSON.stringify(events), /first|second/);
});

test("reload returns and emits every changed value with its source, and nothing when none changed", async t => {
  const folder = temporaryFolder("reload");
  const file = join(folder, "limits.yaml");
  const write = (rates: string) =>
    writeFileSync(file, `hosts:\n  ${HOST}:\n    metadata:\n      rates: ${rates}\nglobal: { max_inflight: 9 }\n`);
  write("1/SECOND");
  const hub = await openHub(t, { env: { DOCSTOKG_RLIMITS_YAML: file } });
  const events = recordEvents(hub);
  write("2/SECOND");
  const expected = {
    setting: `ratelimits.hosts.${HOST}.metadata.rates`,
    old: "1/SECOND",
    new: "2/SECOND",
    source: `${file}:4`,
  };
  assert.deepEqual(await hub.reload(), [expected]);
  assert.deepEqual(await hub.reload(), []);
  assert.deepEqual(only(events, "policy_changed"), [{ event_type: "policy_changed", ...expected, changes: 1 }]);
  assert.equal(only(events, "policy_loaded").length, 3);
});

test("a changed key of an identity is listed without its value", async t => {
  const identities = (key: string) => ({ identities: { hosts: { [HOST]: { headers: { "x-api-key": key } } } } });
  const hub = await openHub(t, { policy: identities("k3y-first") });
  const changes = await hub.reload(identities("k3y-second"));
  assert.deepEqual(changes, [
    {
      setting: `identities.hosts.${HOST}.headers.x-api-key`,
      old: "(not shown)",
      new: "(not shown)",
      source: "identities",
    },
  ]);
});

test("reload without options reads the policy of the last reload again", async t => {
  const hub = await openHub(t, { policy: limits("1/SECOND") });
  await hub.reload(limits("2/SECOND"));
  assert.deepEqual(await hub.reload(), []);
  assert.equal(hub.policyFor(HOST).rates, "2/SECOND");
});

test("of reloads that run together the last one stays in force", async t => {
  const hub = await openHub(t, { policy: limits("1/SECOND") });
  const results = await Promise.allSettled([
    hub.reload(limits("2/SECOND")),
    hub.reload({ ratelimits: { hosts: { [HOST]: { metadata: { rates: "fast" } } } } }),
    hub.reload(limits("3/SECOND")),
  ]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  assert.ok((results[1] as PromiseRejectedResult).reason instanceof ConfigError);
  assert.equal(hub.policyFor(HOST).rates, "3/SECOND");
});

test("a reload during requests loses none of them", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await openHub(t, {
    cache: false,
    policy: { ratelimits: { extends: "none", defaults: { metadata: { rates: "500/SECOND", max_delay_ms: 60_000 } } } },
  });
  const calls = Array.from({ length: 50 }, async () => (await hub.fetch(server.origin)).text());
  for (const rates of ["400/SECOND", "300/SECOND"])
    await hub.reload({ ratelimits: { extends: "none", defaults: { metadata: { rates, max_delay_ms: 60_000 } } } });
  assert.deepEqual(new Set(await Promise.all(calls)), new Set(["ok"]));
  assert.equal(server.requests.length, 50);
});

test("with a shared store, a call that waits for a long window starts when a reload shortens it", async t => {
  const folder = temporaryFolder("reload");
  const server = await serve(t, (_, response) => response.end("ok"));
  const policy = (rates: string) => ({
    ratelimits: { extends: "none" as const, defaults: { metadata: { rates, guard_ms: 0 } } },
    breakers: { extends: "none" as const },
  });
  const hub = await openHub(t, {
    policy: policy("1/HOUR"),
    store: `sqlite:${join(folder, "shared.db")}`,
    cache: false,
  });
  await (await hub.fetch(server.origin)).text();
  const waiting = hub.fetch(server.origin, { maxWaitMs: Number.POSITIVE_INFINITY });
  // The store has said that nothing is free for an hour.
  await assert.rejects(hub.fetch(server.origin, { maxWaitMs: 1000 }), { code: "DOCSTOKG_RATE_LIMITED" });
  await hub.reload(policy("1/100MS"));
  assert.equal((await waiting).status, 200);
});

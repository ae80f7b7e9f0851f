import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createHub } from "../../src/http/create-hub.ts";
import { Operator } from "../../src/http/operator.ts";
import type { BreakersOptions } from "../../src/policy/breaker-schema.ts";
import { loadPolicy } from "../../src/policy/load.ts";
import type { RatelimitsOptions } from "../../src/policy/ratelimit-schema.ts";
import { type StoreName, storeFor } from "../../src/stores/open-store.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { PostgresServer, whyNoPostgres } from "../harvest/postgres-server.ts";
import { serve } from "../http/kit.ts";
import { RedisServer, whyNoRedis } from "../stores/redis-server.ts";
import { createStoreFile, runCli, temporaryFolder } from "./kit.ts";

const LIMITS = { rates: "1000/SECOND", max_delay_ms: 0 };

type ProcessPolicy = BreakersOptions & { readonly limits?: RatelimitsOptions };

/** Hubs that share a store and have called a server, and are listed in the store. */
async function startHubs(t: TestContext, store: StoreName, processes: readonly ProcessPolicy[]) {
  const { origin } = await serve(t, (_, response) => response.end("hello"));
  const hubs = await Promise.all(
    processes.map(({ limits = {}, ...options }) =>
      createHub({
        env: {},
        store,
        cache: false,
        retry: false,
        policy: {
          ratelimits: { extends: "none", defaults: { metadata: LIMITS }, ...limits },
          breakers: { extends: "none", ...options },
        },
      }),
    ),
  );
  t.after(() => Promise.all(hubs.map(hub => hub.close())));
  for (const hub of hubs) await (await hub.fetch(origin)).text();
  const shared = storeFor(store, { policy: await loadPolicy({ env: {} }), env: {}, time: systemTime, random: () => 0 });
  assert.ok(shared !== undefined);
  t.after(() => shared.close());
  const operator = new Operator(shared);
  while ((await operator.processes()).length < hubs.length) await systemTime.sleep(20);
  return { origin, hubs, operator };
}

async function refusal(hub: Awaited<ReturnType<typeof createHub>>, origin: string): Promise<string | undefined> {
  try {
    await (await hub.fetch(origin)).text();
    return undefined;
  } catch (error) {
    return (error as { reason?: string }).reason;
  }
}

async function storesOf(t: TestContext): Promise<readonly StoreName[]> {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  if (whyNoRedis() !== false) return [store];
  const redis = await RedisServer.start();
  t.after(() => redis.stop());
  return [store, redis.url as StoreName];
}

/** The same, and PostgreSQL. */
async function allStoresOf(t: TestContext): Promise<readonly StoreName[]> {
  const stores = await storesOf(t);
  if (whyNoPostgres() !== false) return stores;
  const postgres = await PostgresServer.start();
  t.after(() => postgres.stop());
  return [...stores, `postgres://docstokg@127.0.0.1:${postgres.port}/postgres`];
}

test("an order is acknowledged by every process, also by those that send nothing", async t => {
  for (const store of await storesOf(t)) {
    const { origin, hubs } = await startHubs(t, store, [{}, {}, {}]);
    const opened = await runCli(["breaker", "open", "127.0.0.1", "--for", "300s", "--store", store]);
    assert.match(opened.stdout, /^circuit of 127\.0\.0\.1: open until .*\napplied by 3 of 3 processes\n$/);
    assert.equal(opened.exitCode, 0);
    for (const hub of hubs) assert.equal(hub.snapshot().hosts[0]?.reason, "cli-open:operator", "before any request");
    for (const hub of hubs) assert.equal(await refusal(hub, origin), "cli-open:operator");
    const closed = await runCli(["breaker", "close", "127.0.0.1", "--json", "--store", store]);
    const { applied, processes, state } = JSON.parse(closed.stdout);
    assert.deepEqual([state, applied, processes.length], ["closed", 3, 3]);
    for (const hub of hubs) assert.equal(await refusal(hub, origin), undefined);
  }
});

test("an order without effect in a process in shadow mode is reported as such", async t => {
  for (const store of await storesOf(t)) {
    const { origin, hubs } = await startHubs(t, store, [{}, { mode: "shadow" }]);
    const { stdout, exitCode } = await runCli(["breaker", "open", "127.0.0.1", "--for", "300s", "--store", store]);
    assert.match(stdout, /^applied by 1 of 2 processes\nin shadow mode, where it has no effect: \d+ \S+ on \S+\n$/m);
    assert.equal(exitCode, 1);
    assert.deepEqual(await Promise.all(hubs.map(hub => refusal(hub, origin))), ["cli-open:operator", undefined]);
  }
});

test("a process that does not answer is named", async t => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const { operator } = await startHubs(t, store, [{}]);
  const [running] = await operator.processes();
  const shared = storeFor(store, { policy: await loadPolicy({ env: {} }), env: {}, time: systemTime, random: () => 0 });
  await shared?.change("process gone", ({ nowUs }) => ({
    record: { next: { ...running, pid: 4711, program: "gone.js" }, keepUntilUs: nowUs + 60_000_000 },
    result: undefined,
  }));
  await shared?.close();
  const { stdout, exitCode } = await runCli(["breaker", "open", "127.0.0.1", "--for", "9s", "--store", store]);
  assert.match(
    stdout,
    /^applied by 1 of 2 processes\nno answer within 2\.0 s: 4711 gone\.js on \S+\. A running process/m,
  );
  assert.equal(exitCode, 1);
});

test("why and breaker open use the policy of the running process, not that of the command", async t => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const { origin } = await serve(t, (_, response) => response.end("hello"));
  const host = new URL(origin).host;
  const hub = await createHub({
    env: {},
    store,
    cache: false,
    policy: { ratelimits: { hosts: { [host]: { metadata: { rates: "100/SECOND" } } } } },
  });
  t.after(() => hub.close());
  await (await hub.fetch(origin)).text();
  const shared = storeFor(store, { policy: await loadPolicy({ env: {} }), env: {}, time: systemTime, random: () => 0 });
  assert.ok(shared !== undefined);
  t.after(() => shared.close());
  const operator = new Operator(shared);
  while ((await operator.policies()).length === 0) await systemTime.sleep(20);

  const why = JSON.parse((await runCli(["why", origin, "--store", store, "--json"])).stdout);
  assert.equal(why.host, host);
  assert.deepEqual(why.policy.find(({ field }: { field: string }) => field === "rates").value, "100/SECOND");
  assert.deepEqual(why.policySource, { kind: "process", pids: [process.pid], otherPids: [] });
  assert.match((await runCli(["why", origin, "--store", store])).stdout, /^policy +of process \d+$/m);
  const whatIf = await runCli([
    "why",
    origin,
    "--store",
    store,
    "--rate",
    "127.0.0.1:metadata=rates:7/SECOND",
    "--json",
  ]);
  assert.equal(JSON.parse(whatIf.stdout).policySource.kind, "command");

  const opened = await runCli(["breaker", "open", host, "--for", "60s", "--store", store]);
  assert.ok(opened.stdout.startsWith(`circuit of ${host}: open until `), opened.stdout);
  assert.equal(await refusal(hub, origin), "cli-open:operator");
});

test("a hold is acknowledged by every process, also in shadow mode, and released by a command", async t => {
  for (const store of await storesOf(t)) {
    const { origin, hubs } = await startHubs(t, store, [{}, { mode: "shadow" }]);
    const argv = ["limits", "hold", "127.0.0.1:metadata", "--for", "300s", "--reason", "quota", "--store", store];
    const held = await runCli(argv);
    assert.match(held.stdout, /^127\.0\.0\.1 \(metadata\): held until .*Z \(300 s\)\napplied by 2 of 2 processes\n$/);
    assert.equal(held.exitCode, 0);
    for (const hub of hubs) {
      assert.equal(
        hub.limits.list().find(({ role }) => role === "metadata")?.hold?.reason,
        "quota",
        "before any request",
      );
      await assert.rejects(hub.fetch(origin), { code: "DOCSTOKG_RATE_LIMITED" });
    }
    const shorter = await runCli(["limits", "hold", "127.0.0.1:metadata", "--for", "5", "--json", "--store", store]);
    const { changed, heldUntil: unchangedEnd } = JSON.parse(shorter.stdout);
    assert.equal(changed, false);
    assert.ok(Date.parse(unchangedEnd) - Date.now() > 60_000, "the end of the hold that goes on");
    const shown = await runCli(["limits", "show", "--store", store]);
    assert.match(shown.stdout, /hold \(quota\) \(an operator's order\)/);
    const released = await runCli(["limits", "release", "127.0.0.1", "--json", "--store", store]);
    const { target, heldUntil, applied, processes } = JSON.parse(released.stdout);
    assert.deepEqual([target, heldUntil, applied, processes.length], ["127.0.0.1", null, 2, 2]);
    for (const hub of hubs) assert.equal(await refusal(hub, origin), undefined);
  }
});

test("a hold of a resolver or of an unknown host is a usage error", async t => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  await startHubs(t, store, [{}]);
  const failure = async (target: string) => {
    const { exitCode, stderr } = await runCli(["limits", "hold", target, "--for", "9s", "--store", store]);
    assert.equal(exitCode, 2);
    return stderr;
  };
  assert.match(await failure("resolver:crossref"), /resolver crossref has no rate limits; expected a host/);
  assert.match(await failure("127.0.0.2"), /unknown target "127\.0\.0\.2": no running process has called it/);
});

test("limits set changes the rates of every process, names the order everywhere, and limits reset ends it", async t => {
  for (const store of await allStoresOf(t)) {
    const { origin, hubs } = await startHubs(t, store, [{}, {}]);
    const argv = [
      "limits",
      "set",
      "127.0.0.1:metadata",
      "2/HOUR",
      "--for",
      "300",
      "--reason",
      "quota",
      "--store",
      store,
    ];
    const changed = await runCli(argv);
    assert.match(
      changed.stdout,
      /^127\.0\.0\.1 \(metadata\): 2\/HOUR until .*Z \(300 s\), by \S+@\S+\napplied by 2 of 2 processes\n$/,
    );
    assert.equal(changed.exitCode, 0);
    for (const hub of hubs) {
      const key = hub.limits.list().find(({ role }) => role === "metadata");
      assert.deepEqual([key?.order?.rates, key?.order?.reason, key?.order?.isLooser], ["2/HOUR", "quota", false]);
    }
    // Each has sent one request before the order, and both count.
    for (const hub of hubs) await assert.rejects(hub.fetch(origin), { code: "DOCSTOKG_RATE_LIMITED" });
    const shown = await runCli(["limits", "show", "--store", store]);
    assert.match(
      shown.stdout,
      /^127\.0\.0\.1 metadata: 2\/HOUR for another \d+ s instead of 1000\/SECOND, ordered by \S+@\S+: quota$/m,
    );
    const ask = () => runCli(["why", origin, "--store", store]);
    let why = await ask();
    // The status of before the refusals is replaced within a second.
    while (why.stdout.includes("Sent at once")) {
      await systemTime.sleep(50);
      why = await ask();
    }
    assert.match(why.stdout, /^order +2\/HOUR for another \d+ s instead of 1000\/SECOND, ordered by \S+@\S+: quota$/m);
    assert.match(why.stdout, /^decided by +2\/HOUR \(an operator's order: quota \(\S+@\S+\)\)$/m);
    const reset = await runCli(["limits", "reset", "127.0.0.1", "--json", "--store", store]);
    const { target, until, applied, processes } = JSON.parse(reset.stdout);
    assert.deepEqual([target, until, applied, processes.length], ["127.0.0.1", null, 2, 2]);
    for (const hub of hubs) await (await hub.fetch(origin, { maxWaitMs: 60_000 })).text();
  }
});

test("limits set changes the total and the requests in flight in every process, and limits reset ends both", async t => {
  for (const store of await allStoresOf(t)) {
    const { origin, hubs } = await startHubs(t, store, [{}, {}]);
    const set = (...argv: readonly string[]) =>
      runCli(["limits", "set", ...argv, "--reason", "quota", "--store", store]);
    const total = await set("127.0.0.1:total", "3/HOUR");
    assert.match(total.stdout, /^127\.0\.0\.1 \(total\): 3\/HOUR until .*\napplied by 2 of 2 processes\n$/);
    const slots = await set("127.0.0.1:metadata", "--max-concurrent", "2");
    assert.match(slots.stdout, /^127\.0\.0\.1 \(metadata\): max_concurrent 2 until .*\napplied by 2 of 2 processes\n$/);
    // Each process has sent a metadata request before the order. One more of any role is left for both.
    const [first, second] = hubs;
    const sent = await Promise.all(
      [first, second, first].map(hub =>
        hub?.fetch(origin, { role: "landing", maxWaitMs: 3000 }).then(
          response => response.text().then(() => 1),
          () => 0,
        ),
      ),
    );
    assert.equal(
      sent.reduce<number>((sum, each) => sum + (each ?? 0), 0),
      1,
      store,
    );
    const shown = await runCli(["limits", "show", "--store", store]);
    assert.match(
      shown.stdout,
      /^127\.0\.0\.1 total: 3\/HOUR for another 366 days instead of no limit, ordered by .*: quota$/m,
    );
    assert.match(
      shown.stdout,
      /^127\.0\.0\.1 metadata: max_concurrent 2 for another 366 days instead of (?:max_concurrent \d+|no limit), ordered by/m,
    );
    const why = await runCli(["why", origin, "--store", store]);
    assert.match(why.stdout, /^order +max_concurrent 2 for another/m);
    assert.match(why.stdout, /^order +total of 127\.0\.0\.1: 3\/HOUR for another 366 days/m);
    await runCli(["limits", "reset", "127.0.0.1", "--store", store]);
    for (const hub of hubs) await (await hub.fetch(origin, { maxWaitMs: 60_000 })).text();
  }
});

test("a looser rate needs --force, and is then called looser in every output", async t => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const { hubs } = await startHubs(t, store, [{}]);
  const set = (...more: readonly string[]) =>
    runCli(["limits", "set", "127.0.0.1:metadata", "2000/SECOND", "--reason", "load test", ...more, "--store", store]);
  const refused = await set();
  assert.equal(refused.exitCode, 2);
  assert.match(
    refused.stderr,
    /limits set: 2000\/SECOND is looser than 1000\/SECOND of 127\.0\.0\.1 \(metadata\) in the policy; --force sets it anyway/,
  );
  assert.equal(hubs[0]?.limits.list()[0]?.order, undefined);
  const forced = await set("--force");
  assert.match(forced.stdout, /^127\.0\.0\.1 \(metadata\): LOOSER than the policy, which has 1000\/SECOND$/m);
  assert.match(forced.stdout, /^applied by 1 of 1 process$/m);
  const shown = await runCli(["limits", "show", "--store", store]);
  assert.match(
    shown.stdout,
    /^127\.0\.0\.1 metadata: LOOSER than the policy, 2000\/SECOND for another .* instead of 1000\/SECOND/m,
  );
});

test("limits set names a process whose limits are in shadow mode, and limits reset is applied there too", async t => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  await startHubs(t, store, [{}, { limits: { mode: "shadow" } }]);
  const argv = ["--reason", "test", "--store", store];
  const set = await runCli(["limits", "set", "127.0.0.1:metadata", "1/SECOND", ...argv]);
  assert.match(set.stdout, /\napplied by 1 of 2 processes\nin shadow mode, where it has no effect: \d+ \S+ on \S+\n$/);
  assert.equal(set.exitCode, 1);
  const reset = await runCli(["limits", "reset", "127.0.0.1:metadata", ...argv]);
  assert.match(reset.stdout, /\napplied by 2 of 2 processes\n$/);
  assert.equal(reset.exitCode, 0);
});

test("limits set refuses bad rates, durations and targets", async t => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  await startHubs(t, store, [{}]);
  const failure = async (...argv: readonly string[]) => {
    const { exitCode, stderr } = await runCli(["limits", "set", ...argv, "--store", store]);
    assert.equal(exitCode, 2);
    return stderr;
  };
  assert.match(await failure("127.0.0.1", "1/SECOND"), /--reason: required: one line/);
  assert.match(await failure("127.0.0.1", "often", "--reason", "x"), /\[rate\]: "often" is not a rate/);
  assert.match(
    await failure("127.0.0.1", "1/SECOND", "--for", "-1", "--reason", "x"),
    /--for: "-1" is not a duration above 0 and at most 366day/,
  );
  assert.match(await failure("resolver:crossref", "1/SECOND", "--reason", "x"), /has no rate limits; expected a host/);
  assert.match(
    await failure("127.0.0.1:owner", "1/SECOND", "--reason", "x"),
    /<target>: "127\.0\.0\.1:owner": unknown role "owner"; expected metadata, landing or artifact, "total" for/,
  );
  assert.match(
    await failure("127.0.0.1", "--reason", "x"),
    /\[rate\]: expected rates, such as 2\/SECOND, or --max-con/,
  );
  assert.match(
    await failure("127.0.0.1", "--max-concurrent", "0", "--reason", "x"),
    /--max-concurrent: "0" is not a whole number of at least 1/,
  );
});

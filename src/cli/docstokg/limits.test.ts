import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createStoreFile, runCli, temporaryFolder } from "../../../test/cli/kit.ts";
import { serve } from "../../../test/http/kit.ts";
import { createHub } from "../../http/create-hub.ts";
import type { ProcessKeyRow } from "../../http/process-row.ts";
import { systemTime } from "../../time/system-time.ts";

/** A hub with one call in flight and two that wait for the next minute. */
async function busyHub(t: TestContext, limits: object = {}, policy: object = {}) {
  const { store } = await temporaryFolder();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { origin } = await serve(t, (_, response) => void released.then(() => response.end("slow")));
  const metadata = { rates: "1/MINUTE", max_delay_ms: 200_000, ...limits };
  const hub = await createHub({
    env: {},
    store,
    cache: false,
    retry: false,
    policy: {
      ratelimits: { extends: "none", defaults: { metadata }, ...policy },
      breakers: { extends: "none" },
    },
  });
  const calls = [1, 2, 3].map(n => hub.fetch(`${origin}/${n}`).then(response => response.status, String));
  t.after(async () => {
    release();
    await hub.destroy();
    await Promise.all(calls);
  });
  return { store, hub };
}

/** The processes in the store, as soon as one has published that its first call is in flight. */
async function waitForProcesses(store: string, ...flags: string[]) {
  for (;;) {
    const { stdout } = await runCli(["limits", "show", "--json", "--store", store, ...flags]);
    // Until the hub has opened its store there is no file, and nothing is printed.
    const processes = stdout === "" ? [] : JSON.parse(stdout);
    if (processes[0]?.inFlight === 1) return processes;
    await systemTime.sleep(50);
  }
}

test("limits show prints used units, calls in flight, the queue, the next free slot and the limiting window", async t => {
  const { store } = await busyHub(t);
  const [row] = await waitForProcesses(store);
  assert.equal(row.pid, process.pid);
  assert.deepEqual([row.calls, row.inFlight, row.waiting], [3, 1, 2]);
  const [key] = row.keys;
  assert.deepEqual([key.key, key.role, key.waiting, key.inFlight], ["127.0.0.1", "metadata", 2, 1]);
  assert.deepEqual(key.constraint, { kind: "window", owner: "127.0.0.1", limit: "1/MINUTE" });

  const { exitCode, stdout } = await runCli(["limits", "show", "--store", store]);
  assert.equal(exitCode, 0);
  assert.match(stdout, /^pid +program +machine +open calls +in flight +queued +updated$/m);
  assert.match(stdout, new RegExp(`^${process.pid} +\\S+ +\\S+ +3 +1 +2 +\\S+ m?s ago$`, "m"));
  assert.match(stdout, /^key +pid +used +per s +in flight +queued +next free +new call +pace +guard +limited by$/m);
  assert.match(
    stdout,
    new RegExp(
      `^127\\.0\\.0\\.1 metadata +${process.pid} +1/1 MINUTE +0.0167 +1 +2 +\\d+ s +\\d+ s +1 +25 ms +1/MINUTE \\(policy\\.ratelimits\\)$`,
      "m",
    ),
  );
});

test("max_concurrent is shown beside the calls in flight, and named if it is the limit", async t => {
  const { store } = await busyHub(t, { rates: "100/SECOND", max_concurrent: 1 });
  await waitForProcesses(store);
  const { stdout } = await runCli(["limits", "show", "--store", store]);
  assert.match(stdout, / 1\/1 +2 +now +now +1 +25 ms +max_concurrent 1 \(policy\.ratelimits\)$/m);
});

test("--host prints only the keys of that host", async t => {
  const { store } = await busyHub(t);
  const [row] = await waitForProcesses(store, "--host", "other.example");
  assert.deepEqual(row.keys, []);
  const { stdout } = await runCli(["limits", "show", "--host", "other.example", "--store", store]);
  assert.match(stdout, /\nNo rate limit of other\.example is in use\.\n$/);
});

test("--host accepts every spelling of a host, and a URL", async t => {
  const { store } = await busyHub(t);
  await waitForProcesses(store);
  for (const name of ["127.0.0.1", "127.1", "http://127.0.0.1:8080/x?y=1"]) {
    assert.deepEqual(await keysOf(store, name), ["127.0.0.1"], name);
  }
});

/** The keys that `limits show` lists with `--host`. */
async function keysOf(store: string, name: string): Promise<readonly string[]> {
  const { stdout } = await runCli(["limits", "show", "--json", "--host", name, "--store", store]);
  const [row] = JSON.parse(stdout);
  return row.keys.map(({ key }: { key: string }) => key);
}

test("a host whose limits depend on an API key is shown with its setting, and found by --host", async t => {
  const { store } = await temporaryFolder();
  const { origin } = await serve(t, (_, response) => response.end());
  const hosts = ["127.0.0.1", "a.example"];
  const limits = { metadata: { rates: "1/HOUR" }, with: { A_KEY: { metadata: { rates: "1/2HOUR" } } } };
  const hub = await createHub({
    env: { A_KEY: "secret" },
    store,
    cache: false,
    network: { connectTo: [`a.example:80:${new URL(origin).host}`] },
    policy: {
      ratelimits: { hosts: Object.fromEntries(hosts.map(host => [host, limits])) },
      identities: { hosts: Object.fromEntries(hosts.map(host => [host, { headers: { "x-key": "{A_KEY}" } }])) },
    },
  });
  t.after(() => hub.destroy());
  await hub.fetch(origin);
  // No key is sent over http, except to this machine.
  await hub.fetch("http://a.example/");
  const key = "127.0.0.1 with A_KEY";
  for (;;) {
    const { stdout } = await runCli(["limits", "show", "--json", "--store", store]);
    const [row] = JSON.parse(stdout);
    if (row?.keys.length > 1) {
      const shown = row.keys.map((each: ProcessKeyRow) => [each.key, each.decidedBy?.value, each.decidedBy?.where]);
      assert.deepEqual(shown.sort(), [
        [key, "1/2HOUR", "policy.ratelimits"],
        ["a.example", "1/HOUR", "policy.ratelimits"],
      ]);
      break;
    }
    await systemTime.sleep(50);
  }
  for (const name of ["127.0.0.1", "https://127.0.0.1/records/1", key])
    assert.deepEqual(await keysOf(store, name), [key], name);
  for (const name of ["a.example", "http://a.example/x", "a.example with A_KEY"])
    assert.deepEqual(await keysOf(store, name), ["a.example"], name);
});

test("a service is shown with its setting, and found by its name, with or without service:, and by a member", async t => {
  const metadata = { rates: "1/2MINUTE", max_delay_ms: 200_000 };
  const policy = { services: { local: { members: ["127.0.0.1"], metadata } } };
  const { store } = await busyHub(t, {}, policy);
  const [row] = await waitForProcesses(store);
  assert.deepEqual(
    [row.keys[0].key, row.keys[0].decidedBy.value, row.keys[0].decidedBy.where],
    ["service local", "1/2MINUTE", "policy.ratelimits"],
  );
  for (const name of ["local", "Local", "service:local", "service local", "127.0.0.1", "http://127.0.0.1/x"])
    assert.deepEqual(await keysOf(store, name), ["service local"], name);
  const { exitCode, stderr } = await runCli(["limits", "show", "--host", "a b", "--store", store]);
  assert.deepEqual([exitCode, stderr], [2, 'docstokg: --host: "a b" is neither a host nor a URL\n']);
});

test("without a running process show prints that there is none", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const { exitCode, stdout } = await runCli(["limits", "show", "--store", store]);
  assert.equal(exitCode, 0);
  assert.match(stdout, /\nNo process has published its status in this store in the last minute\.\n$/);
});

test("the tables fit terminals of 80 and 40 columns", async t => {
  const { store } = await busyHub(t);
  await waitForProcesses(store);
  for (const columns of [80, 40]) {
    const { stdout } = await runCli(["limits", "show", "--store", store], {
      isTTY: true,
      columns,
      env: { NO_COLOR: "1" },
    });
    for (const line of stdout.split("\n").slice(2)) assert.ok(line.length <= columns, line);
    assert.match(stdout, /1\/MINUTE/);
  }
});

test("limits show says when a process has more keys than it publishes", async t => {
  const { store, hub } = await busyHub(t);
  for (let n = 0; n <= 200; n += 1) hub.limits.hold(`host-${n}.example`, { seconds: 600 });
  for (;;) {
    const [{ keys, isPartial }] = await waitForProcesses(store);
    if (isPartial) {
      assert.equal(keys.length, 200);
      break;
    }
    await systemTime.sleep(50);
  }
  const said = new RegExp(`^Not all keys are listed: process ${process.pid} publishes only its busiest ones\\.$`, "m");
  assert.match((await runCli(["limits", "show", "--store", store])).stdout, said);
});

test("a hold of a host that is shorter than an earlier one of a role holds the other roles", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const hold = (target: string, duration: string, ...flags: string[]) =>
    runCli(["limits", "hold", target, "--for", duration, "--store", store, ...flags]);
  await hold("api.crossref.org:metadata", "1h");
  const { stdout } = await hold("api.crossref.org", "300s");
  assert.match(
    stdout,
    /^api\.crossref\.org: metadata held until \S+ \(\d+ s\); landing, artifact held until \S+ \(300 s\)\n/,
  );
  assert.doesNotMatch(stdout, /Nothing was changed/);
  const { changed, heldUntil, roles } = JSON.parse((await hold("api.crossref.org", "200s", "--json")).stdout);
  assert.equal(changed, false);
  assert.deepEqual(
    roles.map(({ role, heldUntil: end }: { role: string; heldUntil: string }) => [role, end === heldUntil]),
    [
      ["metadata", true],
      ["landing", false],
      ["artifact", false],
    ],
  );
});

test("the setting behind a limit is that of the policy of its process", async t => {
  const { store } = await temporaryFolder();
  const { origin } = await serve(t, (_, response) => response.end("ok"));
  const policy = { ratelimits: { extends: "none" }, breakers: { extends: "none" } } as const;
  const settings = [
    ["DOCSTOKG_RLIMITS", "127.0.0.1:metadata=rates:1/MINUTE"],
    ["DOCSTOKG_RLIMIT__127.0.0.1__metadata", "rates:1/HOUR"],
  ] as const;
  for (const [name, value] of settings) {
    const hub = await createHub({ env: { [name]: value }, store, cache: false, policy });
    t.after(() => hub.destroy());
    await hub.fetch(origin, { maxWaitMs: 0 }).then(response => response.text(), String);
  }
  for (;;) {
    const { stdout } = await runCli(["limits", "show", "--json", "--store", store]);
    const processes: readonly { readonly keys: readonly ProcessKeyRow[] }[] = JSON.parse(stdout);
    const found = processes.flatMap(({ keys }) => keys.flatMap(({ decidedBy }) => decidedBy?.where ?? []));
    if (found.length === settings.length) {
      assert.deepEqual(new Set(found), new Set(settings.map(([name]) => name)));
      return;
    }
    await systemTime.sleep(50);
  }
});

/** A hub that has called the member of a service, and commands on its store. */
async function memberOfService(t: TestContext) {
  const { store } = await temporaryFolder();
  const { origin } = await serve(t, (_, response) => response.end("ok"));
  const service = { members: ["127.0.0.1"], metadata: { rates: "100/SECOND", max_delay_ms: 0 } };
  const hub = await createHub({
    ...{ env: {}, store, cache: false, retry: false },
    policy: { ratelimits: { extends: "none", services: { loop: service } }, breakers: { extends: "none" } },
  });
  t.after(() => hub.destroy());
  const send = () => hub.fetch(origin).then(response => response.text(), String);
  await send();
  const limits = async (...argv: string[]) => (await runCli(["limits", ...argv, "--store", store])).stdout;
  while (JSON.parse((await limits("show", "--json")) || "[]").length === 0) await systemTime.sleep(20);
  return { hub, send, limits };
}

test("a release of a host says that its service is still held, and by which command that ends", async t => {
  const { send, limits } = await memberOfService(t);
  await limits("hold", "service:loop", "--for", "60s", "--reason", "pause");
  const released = await limits("release", "127.0.0.1");
  assert.match(released, /^127\.0\.0\.1: released$/m);
  assert.match(
    released,
    /^Still held: service loop \(metadata, landing, artifact\) until \S+Z \(60 s\)\. To release it: docstokg limits release service:loop$/m,
  );
  assert.match(await send(), /an operator holds service loop/);
  const { stillHeld } = JSON.parse(await limits("release", "127.0.0.1:landing", "--json"));
  assert.deepEqual(
    stillHeld.map(({ target, role, reason }: Record<string, string>) => [target, role, reason]),
    [["service loop", "landing", "cli-open:pause"]],
  );
  assert.doesNotMatch(await limits("release", "service:loop"), /Still held/);
  assert.equal(await send(), "ok");
  assert.deepEqual(JSON.parse(await limits("release", "127.0.0.1", "--json")).stillHeld, []);
});

test("limits show prints the hold of one host of a service, although other calls of the key may start", async t => {
  const { limits } = await memberOfService(t);
  await limits("hold", "127.0.0.1:metadata", "--for", "60s", "--reason", "pause");
  assert.match(await limits("show"), /^127\.0\.0\.1 metadata: held for another \d+ s by an operator: pause$/m);
});

test("control characters in the reason and the author of an order do not reach the terminal", async t => {
  const { hub, limits } = await memberOfService(t);
  const reason = "a\u{1b}[2J\nb";
  hub.limits.set("service:loop", "2/SECOND", { reason, by: "\u{1b}]0;x\u{7}" });
  hub.limits.hold("service:loop", { seconds: 60, reason });
  const isShown = (text: string) => text.includes("ordered by") && text.includes("by an operator");
  let shown = await limits("show");
  while (!isShown(shown)) {
    await systemTime.sleep(50);
    shown = await limits("show");
  }
  assert.doesNotMatch(shown.replaceAll("\n", ""), /\p{Cc}/u);
  assert.match(shown, /: a\u{fffd}\[2J\u{fffd}b$/mu);
});

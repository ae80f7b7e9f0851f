import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { createStoreFile, runCli, temporaryFolder } from "../../../test/cli/kit.ts";
import { serve, until } from "../../../test/http/kit.ts";
import { createHub } from "../../http/create-hub.ts";
import { ORDER_LOG_NAME } from "../../stores/order-log.ts";
import { systemTime } from "../../time/system-time.ts";

test("why prints host, group, breaker, cache, and each setting with its source", async () => {
  const { exitCode, stdout } = await runCli(["why", "https://ARXIV.org/abs/1?key=secret", "--role", "landing"]);
  assert.equal(exitCode, 0);
  assert.match(stdout, /^https:\/\/arxiv\.org\/abs\/1\?… \(landing\)\n/);
  assert.match(
    stdout,
    /^A new process sends this request at once, then one request every .* The state of running processes is unknown\.$/m,
  );
  assert.match(stdout, /^host +arxiv\.org, member of service arxiv$/m);
  assert.match(stdout, /^breaker +unknown: the shared store was not read$/m);
  assert.match(
    stdout,
    /^process +unknown: no shared store: each process keeps its rate limits and circuits in its own memory/m,
  );
  assert.match(stdout, /^cache +not read: name the cache with --cache sqlite:<file>$/m);
  assert.match(
    stdout,
    /^service arxiv total\.rates +\S+ .*ratelimits\.yaml \(shipped\):\d+ +services\.arxiv\.total\.rates$/m,
  );
  assert.match(stdout, /^breaker\.fail_max +\d+ .*breakers\.yaml \(shipped\):\d+/m);
  assert.doesNotMatch(stdout, /secret/);
});

test("why names the limits that apply to the URL: over http no key is sent", async () => {
  const env = { NCBI_API_KEY: "0123456789-secret" };
  for (const [scheme, key, note] of [
    ["https", "service ncbi with NCBI_API_KEY", ""],
    ["http", "service ncbi", ", without NCBI_API_KEY, which this URL does not get"],
  ] as const) {
    const url = `${scheme}://eutils.ncbi.nlm.nih.gov/x`;
    const { stdout } = await runCli(["why", url], { env });
    assert.match(
      stdout.replace(/\n +/g, " "),
      new RegExp(`^host +eutils\\.ncbi\\.nlm\\.nih\\.gov, member of ${key}${note}$`, "m"),
    );
    assert.equal(stdout.includes("services.ncbi.with.NCBI_API_KEY"), scheme === "https");
    const { stdout: json } = await runCli(["why", url, "--json"], { env });
    assert.equal(JSON.parse(json).key, key);
  }
});

test("why hides credentials in the path of the URL too", async () => {
  const { stdout } = await runCli(["why", "https://me:secret@a.example/toc;jsessionid=secret;v=2/x?key=secret"]);
  assert.match(stdout, /^https:\/\/a\.example\/toc;jsessionid=…;v=2\/x\?… \(metadata\)\n/);
  assert.doesNotMatch(stdout, /secret/);
});

test("a request is refused if an operator has opened the circuit of its host, with the reason and the time left", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  await runCli(["breaker", "open", "a.example", "--for", "300s", "--reason", "pause", "--store", store], {
    env: { DOCSTOKG_BREAKERS: "a.example=fail_max:5" },
  });
  const { stdout } = await runCli(["why", "https://a.example/x", "--json", "--store", store]);
  const { verdict, host, shared, cache } = JSON.parse(stdout);
  assert.equal(verdict.kind, "refuse");
  assert.deepEqual(verdict.constraint, { kind: "breaker", owner: "a.example", limit: "open circuit (cli-open:pause)" });
  assert.equal(host, "a.example");
  assert.equal(shared.report.state, "open");
  assert.equal(cache.kind, "unread");
  const { stdout: text } = await runCli(["why", "https://a.example/x", "--store", store]);
  assert.match(text, /^breaker +open for another \d+ s \(opened by operator: pause\) \(store sqlite:/m);
  assert.match(text, /^decided by +open circuit \(opened by operator: pause\) \(an operator's order\)$/m);
  assert.match(text, /^process +no process has called this host in the last minute$/m);
  assert.doesNotMatch(text, /cli-open/);
});

test("why reads holds from the store: of the host, and of its service, also if no process runs", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const verdictOf = async (role: string) => {
    const { stdout } = await runCli(["why", "https://arxiv.org/abs/1", "--role", role, "--json", "--store", store]);
    const { verdict, decidedBy } = JSON.parse(stdout);
    return { ...verdict, where: decidedBy?.where };
  };
  assert.equal((await verdictOf("landing")).kind, "send");
  const hold = (target: string, reason: string, duration: string) =>
    runCli(["limits", "hold", target, "--for", duration, "--reason", reason, "--store", store]);
  await hold("arxiv.org:landing", "pause", "5min");
  const held = await verdictOf("landing");
  assert.equal(held.kind, "refuse");
  assert.deepEqual(held.constraint, { kind: "cooldown", owner: "arxiv.org", limit: "hold (pause)" });
  assert.equal(held.where, "an operator's order");
  assert.match(held.text, /^Refused: hold \(pause\) of arxiv\.org, next slot in \d+ s; the call waits at most/);
  assert.equal((await verdictOf("metadata")).kind, "send");
  await hold("service:arxiv", "all", "1h");
  for (const role of ["metadata", "landing"])
    assert.deepEqual((await verdictOf(role)).constraint.owner, "service arxiv", role);
});

test("why finds the key of a host that is not among the 200 busiest ones of a process", async t => {
  const { store } = await temporaryFolder();
  const { origin } = await serve(t, (_, response) => response.end());
  const hub = await createHub({ env: {}, store, cache: false });
  t.after(() => hub.close());
  hub.limits.hold("host-0.example", { seconds: 600 });
  await until(() => lastOrder(store) > 0);
  const first = lastOrder(store);
  for (let n = 1; n <= 300; n += 1) hub.limits.hold(`host-${n}.example`, { seconds: 600 });
  await (await hub.fetch(origin)).text();
  for (;;) {
    const { stdout } = await runCli(["limits", "show", "--json", "--store", store]);
    // While its own orders are being announced, a question could be lost among them.
    if (stdout !== "" && JSON.parse(stdout)[0]?.isPartial && lastOrder(store) === first + 300) break;
    await systemTime.sleep(50);
  }
  const { stdout } = await runCli(["why", "https://host-300.example/x", "--store", store]);
  assert.match(stdout, new RegExp(`^process +${process.pid} \\S+: next slot in \\d+ s \\(.*\\), 0 in flight`, "m"));
  assert.match(stdout, new RegExp(`^Refused by process ${process.pid}: `, "m"));
  const { stdout: none } = await runCli(["why", "https://never.example/x", "--store", store]);
  assert.match(none, /^process +no process has called this host in the last minute$/m);
  const shown = await runCli(["limits", "show", "--host", "host-299.example", "--json", "--store", store]);
  const [{ keys }] = JSON.parse(shown.stdout);
  assert.deepEqual(
    keys.map(({ key, role }: { key: string; role: string }) => [key, role]),
    ["metadata", "landing", "artifact"].map(role => ["host-299.example", role]),
  );
});

/** The number of the last order that was announced; 0 before the first. */
function lastOrder(store: string): number {
  const db = new DatabaseSync(store.slice("sqlite:".length), { readOnly: true, timeout: 60_000 });
  try {
    const row = db.prepare("SELECT record FROM records WHERE name = ?").get(ORDER_LOG_NAME);
    return row === undefined ? 0 : JSON.parse(String(row["record"])).sequence;
  } finally {
    db.close();
  }
}

test("a cached response is judged as the hub does: fresh, stale or absent", async t => {
  const { folder } = await temporaryFolder();
  const cache = `sqlite:${join(folder, "cache.db")}` as const;
  const { origin } = await serve(t, ({ url }, response) => {
    response.setHeader("cache-control", url === "/fresh" ? "max-age=600" : "max-age=0");
    response.setHeader("etag", '"1"');
    response.end("hello");
  });
  const hub = await createHub({ env: {}, cache });
  for (const path of ["/fresh", "/stale"]) await (await hub.fetch(origin + path)).text();
  await hub.close();
  const asked = async (path: string) => {
    const { stdout } = await runCli(["why", origin + path, "--cache", cache, "--json"]);
    return JSON.parse(stdout);
  };
  const fresh = await asked("/fresh");
  assert.equal(fresh.verdict.kind, "cached");
  assert.ok(fresh.cache.found[0].freshMs > 0 && fresh.cache.found[0].freshMs <= 600_000);
  const stale = await asked("/stale");
  assert.equal(stale.verdict.kind, "send");
  assert.equal(stale.cache.found[0].verdict, "revalidate");
  assert.deepEqual((await asked("/never")).cache.found, []);
  const artifact = await runCli(["why", `${origin}/fresh`, "--role", "artifact", "--json"]);
  assert.equal(JSON.parse(artifact.stdout).cache.reason, "artifact responses are not cached");
  const { stdout } = await runCli(["why", `${origin}/fresh`, "--cache", cache]);
  assert.match(stdout, /^Served from the cache: fresh for \d+ s\.$/m);
  assert.match(stdout, /^cache +200, fresh for \d+ s$/m);
});

test("a missing cache or store is not created", async () => {
  const { folder, store } = await temporaryFolder();
  const { exitCode, stderr } = await runCli([
    "why",
    "https://a.example/",
    "--cache",
    `sqlite:${join(folder, "no.db")}`,
  ]);
  assert.equal(exitCode, 2);
  assert.match(stderr, /^docstokg: --cache: file not found: /);
  const { exitCode: withoutStore, stdout } = await runCli(["why", "https://a.example/", "--store", store]);
  assert.equal(withoutStore, 0);
  assert.match(stdout, /^process +unknown: file not found: .*shared\.db \(no process has used it yet\)$/m);
  assert.deepEqual(await readdir(folder), []);
});

test("an invalid argument is named", async () => {
  for (const [argv, message] of [
    [["api.example.org"], /^docstokg: <url>: "api\.example\.org" is not an absolute URL; expected http:/],
    [["ftp://x.example/"], /^docstokg: <url>: "ftp:\/\/x\.example\/" is not an absolute URL; expected http:/],
    [
      ["api.example.org/?api_key=hidden"],
      /^docstokg: <url>: "api\.example\.org\/\?api_key=…?[^h]*" is not an absolute/,
    ],
    [["https://x.example/", "--role", "page"], /^docstokg: --role: unknown role "page"/],
    [
      ["https://x.example/", "--role", "artifact", "--cache", "sqlite:x"],
      /^docstokg: --cache: has no effect with --role/,
    ],
    [["https://x.example/", "--max-inflight", "3"], /^docstokg: unknown option '--max-inflight'/],
    [["https://x.example/", "--cache", "memory"], /^docstokg: --cache: expected sqlite:<file>, not "memory"/],
  ] as const) {
    const { exitCode, stdout, stderr } = await runCli(["why", ...argv]);
    assert.equal(exitCode, 2);
    assert.equal(stdout, "");
    assert.match(stderr, message);
  }
});

/** Hubs that share a store, and the sentence and the facts that `why` prints for the server that they call. */
async function startShared(t: TestContext) {
  const { store } = await temporaryFolder();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { origin } = await serve(t, ({ url }, response) => {
    if (url === "/slow") void released.then(() => response.end());
    else response.end("ok");
  });
  t.after(() => release());
  const start = async (env: Readonly<Record<string, string>>) => {
    const policy = { ratelimits: { extends: "none" }, breakers: { extends: "none" } } as const;
    const hub = await createHub({ env, store, cache: false, retry: false, policy });
    t.after(() => hub.destroy());
    return hub;
  };
  /** The output as soon as the hubs have published what `isReady` waits for. */
  const why = async (isReady: (stdout: string) => boolean) => {
    for (;;) {
      const { stdout } = await runCli(["why", origin, "--store", store]);
      if (isReady(stdout)) return stdout;
      await systemTime.sleep(50);
    }
  };
  return { origin, start, why };
}

test("of two processes, the one that does not wait for a concurrency slot sends the request", async t => {
  const { origin, start, why } = await startShared(t);
  const env = { DOCSTOKG_RLIMITS: "127.0.0.1:metadata=rates:1000/SECOND,max_concurrent:1" };
  const hubs = await Promise.all([start(env), start(env), start(env)]);
  const aborted = new AbortController();
  const slow = hubs.slice(0, 2).map(hub => hub.fetch(`${origin}/slow`, { signal: aborted.signal }).catch(String));
  await (await hubs[2]?.fetch(origin))?.text();
  const stdout = await why(
    text => text.split("waits for a concurrency slot").length === 3 && text.includes("slot free"),
  );
  assert.match(stdout, /^Sent at once\.$/m);
  aborted.abort();
  await Promise.all(slow);
});

test("the bound and the setting are those of the policy of the process, even if another policy is newer", async t => {
  const { origin, start, why } = await startShared(t);
  const first = await start({ DOCSTOKG_RLIMITS: "127.0.0.1:metadata=rates:1/HOUR,max_delay_ms:7" });
  await (await first.fetch(origin)).text();
  await why(text => text.includes("next slot in"));
  const second = await start({ DOCSTOKG_RLIMITS: "127.0.0.1:metadata=rates:5/DAY,max_delay_ms:9" });
  await (await second.fetch(origin.replace("127.0.0.1", "localhost"))).text();
  const stdout = await why(text => /^rates +5\/DAY/m.test(text));
  assert.match(stdout, /^Refused by process \d+: .*; the call waits at most 7 ms/m);
  assert.match(stdout, /^decided by +1\/HOUR \(DOCSTOKG_RLIMITS\)$/m);
});

test("why says that partitions have limits of their own, and does not take a called host for one that was not", async t => {
  const { origin, start, why } = await startShared(t);
  const hub = await start({ DOCSTOKG_RLIMITS: "127.0.0.1:metadata=rates:1/MINUTE,per:partition" });
  for (const partition of ["a", "b"]) await (await hub.fetch(origin, { partition })).text();
  const stdout = await why(text => text.includes("2 partitions"));
  assert.match(stdout, /^Sent at once, if the call names no partition\.$/m);
  assert.match(stdout, /^process +\d+ \S+: has called 2 partitions, each with limits of its own$/m);
});

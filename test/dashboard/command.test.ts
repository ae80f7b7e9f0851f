/** `docstokg dashboard` and real processes that share a store. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { type TestContext, test } from "node:test";
import { docstokg } from "../../src/cli/docstokg.ts";
import { type Io, runProgram } from "../../src/cli/program.ts";
import type { DashboardState } from "../../src/dashboard/dashboard-state.ts";
import { openManifest } from "../../src/harvest/manifest/manifest.ts";
import { SqliteManifest } from "../../src/harvest/manifest/sqlite/sqlite-manifest.ts";
import { createHub } from "../../src/http/create-hub.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { openPage } from "../browser-page.ts";
import { createStoreFile, runCli, temporaryFolder } from "../cli/kit.ts";
import { PostgresServer, whyNoPostgres } from "../harvest/postgres-server.ts";
import { serve } from "../http/kit.ts";
import { RedisServer, whyNoRedis } from "../stores/redis-server.ts";
import { whyNoBrowser } from "../telemetry/chromium.ts";

const root = resolve(import.meta.dirname, "../..");
const skip = whyNoBrowser();

/** A process that calls the server in a loop, and its printed results. */
function startProcess(t: TestContext, store: string, origin: string) {
  const program = spawn(process.execPath, [join(root, "test/cli/fetch-process.ts"), store, origin], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
  t.after(async () => {
    program.stdin.end();
    if (program.exitCode === null && program.signalCode === null) await once(program, "exit");
  });
  const waitForLine = async (wanted: string) => {
    for (;;) {
      const { value, done } = await lines.next();
      assert.ok(!done, "the program has ended");
      if (value === wanted) return;
    }
  };
  return { program, waitForLine };
}

/** Runs the command until the test ends. */
async function startDashboard(t: TestContext, ...argv: string[]) {
  const { promise: printed, resolve: print } = Promise.withResolvers<string>();
  let interrupt: () => void = () => undefined;
  let audit = "";
  let onAudit: () => void = () => undefined;
  const io: Io = {
    argv: ["dashboard", ...argv],
    env: {},
    stdout: {
      write: text => {
        const [, url] = /^Dashboard: (\S+)$/m.exec(text) ?? [];
        if (url !== undefined) print(url);
      },
    },
    stderr: {
      write: text => {
        audit += text;
        onAudit();
      },
    },
    onInterrupt: listener => {
      interrupt = listener;
      return () => undefined;
    },
  };
  const ended = runProgram(docstokg, io);
  t.after(async () => {
    interrupt();
    assert.equal(await ended, 130);
  });
  const url = await Promise.race([printed, ended.then(code => assert.fail(`exit code ${code}: ${audit}`))]);
  /** The page may still show the result of an earlier order with the same name: the log has one line for each. */
  const auditLines = async (count: number) => {
    const lines = () => audit.trim().split("\n");
    while (lines().length < count) {
      const { promise, resolve: proceed } = Promise.withResolvers<void>();
      onAudit = proceed;
      await promise;
    }
    return lines();
  };
  return { url, audit: () => audit, auditLines };
}

test("an operator opens and closes a circuit in the page: every process applies it, and the audit names the reason", {
  skip,
}, async t => {
  const { store } = await temporaryFolder();
  const { origin } = await serve(t, (_, response) => response.end());
  const processes = [startProcess(t, store, origin), startProcess(t, store, origin)];
  for (const { waitForLine } of processes) await waitForLine("200");
  const { url, audit } = await startDashboard(t, "--store", store);
  const { page, trouble } = await openPage(t, url);
  await page.getByRole("link", { name: "Processes" }).click();
  await page.getByText("2 processes on 1 machine").waitFor();
  await page.getByRole("link", { name: "Hosts" }).click();
  await page.getByRole("button", { name: /^127\.0\.0\.1, circuit closed/ }).click();

  await page.getByRole("button", { name: "Open …", exact: true }).click();
  await page.getByLabel("Seconds").fill("600");
  await page.getByLabel("Reason").fill("maintenance <b>until</b> noon");
  await page.getByRole("button", { name: "Open the circuit" }).click();
  await page.getByText("Open the circuit: applied by 2 of 2 processes.").waitFor();
  for (const { waitForLine } of processes) await waitForLine("DOCSTOKG_BREAKER_OPEN");
  await page
    .getByText(/opened by operator: maintenance <b>until<\/b> noon, 9 min|opened by operator.*left/)
    .first()
    .waitFor();
  assert.match(
    audit(),
    /^\S+Z open 127\.0\.0\.1 for 600 s by 127\.0\.0\.1: maintenance <b>until<\/b> noon \(applied by 2 of 2 processes\)$/m,
  );

  await page.getByRole("button", { name: "Close …" }).click();
  await page.getByLabel("Reason").fill("done");
  await page.getByRole("button", { name: "Close the circuit" }).click();
  await page.getByText("Close the circuit: applied by 2 of 2 processes.").waitFor();
  for (const { waitForLine } of processes) await waitForLine("200");
  await page.getByRole("link", { name: "Events" }).click();
  await page.getByText("closed by an operator (127.0.0.1): done; applied by 2 of 2 processes").waitFor();
  assert.deepEqual(trouble, []);
});

test("a process that is killed while the page shows it is shown with the age of its status, and the page stays live", {
  skip,
}, async t => {
  const { store } = await temporaryFolder();
  const { origin } = await serve(t, (_, response) => response.end());
  const [killed, other] = [startProcess(t, store, origin), startProcess(t, store, origin)];
  for (const { waitForLine } of [killed, other]) await waitForLine("200");
  const { url } = await startDashboard(t, "--store", store, "--read-only");
  const { page, trouble } = await openPage(t, `${url}#/processes`);
  await page.getByText("2 processes on 1 machine").waitFor();
  killed.program.kill("SIGKILL");
  await once(killed.program, "exit");
  // The page shows the age of its last status, or how long the process is silent if calls were in progress.
  const age = new RegExp(`pid ${killed.program.pid}\\b.*(silent for [5-9]|[5-9]\\.\\d s ago|\\d\\d s)`);
  await page.getByRole("row", { name: age }).waitFor();
  await other.waitForLine("200");
  assert.equal(await page.locator("#connection").textContent(), "live");
  // Nothing can be changed in read-only mode.
  await page.goto(`${new URL(url).origin}/#/hosts/127.0.0.1`);
  await page.getByRole("heading", { name: "127.0.0.1" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Open …", exact: true }).count(), 0);
  assert.deepEqual(trouble, []);
});

test("actions are refused without the page's token, in read-only mode, for unknown hosts and without a reason", async t => {
  const { store } = await temporaryFolder();
  const { origin } = await serve(t, (_, response) => response.end());
  const { waitForLine } = startProcess(t, store, origin);
  await waitForLine("200");
  const send = async (url: string, body: object, headers: Record<string, string> = {}) => {
    const { origin: page, searchParams } = new URL(url);
    const state = (await (await fetch(`${page}/state?${searchParams}`)).json()) as DashboardState;
    const response = await fetch(`${page}/actions?${searchParams}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        origin: page,
        "x-docstokg-action": state.about.actionToken,
        ...headers,
      },
      body: JSON.stringify(body),
    });
    return { status: response.status, text: await response.text() };
  };
  const { url } = await startDashboard(t, "--store", store);
  const order = { action: "open", host: "127.0.0.1", seconds: 60, reason: "test" };
  const seen = async () => {
    const { origin: page, searchParams } = new URL(url);
    return (await (await fetch(`${page}/state?${searchParams}`)).json()) as DashboardState;
  };
  while ((await seen()).hosts.length === 0) await waitForLine("200");
  assert.equal((await send(url, order, { "x-docstokg-action": "guess" })).status, 403);
  assert.equal((await send(url, order, { origin: "http://evil.example" })).status, 403);
  assert.equal((await send(url, order, { "content-type": "text/plain" })).status, 400);
  const refused: readonly (readonly [object, RegExp])[] = [
    [{ ...order, host: "other.example" }, /unknown host "other\.example"/],
    [{ ...order, role: "owner" }, /unknown role "owner"; expected metadata/],
    [{ ...order, seconds: 0 }, /seconds must be above 0/],
    [{ ...order, seconds: "60" }, /seconds must be above 0/],
    [{ ...order, reason: " " }, /the reason must be one line/],
    [{ ...order, reason: "a\nb" }, /the reason must be one line/],
    [{ ...order, action: "drop" }, /unknown action "drop"; expected open, close, half-open/],
    [{ ...order, reason: "x".repeat(5000) }, /at most 4096 bytes/],
    [[order], /must be a JSON object/],
  ];
  for (const [body, message] of refused) {
    const { status, text } = await send(url, body);
    assert.equal(status, 400, text);
    assert.match(text, message);
  }
  const readOnly = await startDashboard(t, "--store", store, "--read-only");
  assert.deepEqual(await send(readOnly.url, order), { status: 403, text: "403: this dashboard is read-only\n" });
  const applied = await send(url, { ...order, role: "metadata" });
  assert.deepEqual(JSON.parse(applied.text), { isApplied: true, text: "applied by 1 of 1 process" });
  await waitForLine("DOCSTOKG_BREAKER_OPEN");
});

for (const [kind, skipped, start] of [
  ["Redis", whyNoRedis(), async () => RedisServer.start().then(server => [server, `redis://127.0.0.1:${server.port}`])],
  [
    "PostgreSQL",
    whyNoPostgres(),
    async () =>
      PostgresServer.start().then(server => [server, `postgres://docstokg@127.0.0.1:${server.port}/postgres`]),
  ],
] as const)
  test(`processes that share ${kind} are shown and apply orders, and an outage of the store is shown until it is back`, {
    skip: skipped,
  }, async t => {
    const [server, store] = (await start()) as [RedisServer | PostgresServer, string];
    t.after(() => server.stop());
    const { origin } = await serve(t, (_, response) => response.end());
    const { waitForLine } = startProcess(t, store, origin);
    await waitForLine("200");
    const { url, audit } = await startDashboard(t, "--store", store);
    const { origin: page, searchParams } = new URL(url);
    const read = async () => (await (await fetch(`${page}/state?${searchParams}`)).json()) as DashboardState;
    while ((await read()).hosts.length === 0) await waitForLine("200");
    const { about, hosts, processes } = await read();
    assert.deepEqual(
      hosts.map(({ name }) => name),
      ["127.0.0.1"],
    );
    assert.equal(processes.length, 1);
    const act = (order: object) =>
      fetch(`${page}/actions?${searchParams}`, {
        method: "POST",
        headers: { "content-type": "application/json", origin: page, "x-docstokg-action": about.actionToken },
        body: JSON.stringify({ host: "127.0.0.1", reason: "test", ...order }),
      });
    const opened = await act({ action: "open", seconds: 60 });
    assert.deepEqual(await opened.json(), { isApplied: true, text: "applied by 1 of 1 process" });
    await waitForLine("DOCSTOKG_BREAKER_OPEN");
    const limited = await act({ action: "set-limit", role: "total", rates: "5/SECOND", maxConcurrent: 2, seconds: 60 });
    assert.deepEqual(await limited.json(), { isApplied: true, text: "applied by 1 of 1 process" });

    await (server instanceof PostgresServer ? server.kill() : server.stop());
    const lost = await read();
    assert.match(lost.trouble ?? "", /postgres|redis/i);
    assert.deepEqual(
      lost.hosts.map(({ name }) => name),
      ["127.0.0.1"],
      "the last state stays",
    );
    const logged = audit();
    const refused = await act({ action: "close" });
    assert.equal(refused.status, 503);
    assert.match(await refused.text(), /^503: .*(?:postgres|redis)/i);
    assert.equal(audit(), logged, "nothing was carried out");
    await server.start();
    // A Redis server without a file has lost its records; the process writes them again.
    for (;;) {
      const { trouble, hosts: listed } = await read();
      if (trouble === null && listed.length > 0) break;
      await systemTime.sleep(50);
    }
    assert.equal((await act({ action: "close" })).status, 200);
    await waitForLine("200");
  });

test("after the file of the store was deleted, an order is refused and creates no file", async t => {
  const { store, folder } = await temporaryFolder();
  await createStoreFile(store);
  const { url } = await startDashboard(t, "--store", store);
  const { origin, searchParams } = new URL(url);
  const { about } = (await (await fetch(`${origin}/state?${searchParams}`)).json()) as DashboardState;
  const headers = { "content-type": "application/json", origin, "x-docstokg-action": about.actionToken };
  for (const name of await readdir(folder)) await rm(join(folder, name));
  const response = await fetch(`${origin}/ask?${searchParams}`, {
    ...{ method: "POST", headers, body: JSON.stringify({ name: "a.example" }) },
  });
  assert.equal(response.status, 503);
  assert.match(await response.text(), /^503: file not found: .*shared\.db/);
  assert.deepEqual(await readdir(folder), []);
});

test("on Redis an operator opens, holds and limits a host in the page, each applied by every process and ended again", {
  skip: skip || whyNoRedis(),
}, async t => {
  const redis = await RedisServer.start();
  t.after(() => redis.stop());
  const store = `redis://127.0.0.1:${redis.port}`;
  const { origin } = await serve(t, (_, response) => response.end());
  const processes = [startProcess(t, store, origin), startProcess(t, store, origin)];
  const waitForAll = async (line: string) => {
    for (const { waitForLine } of processes) await waitForLine(line);
  };
  await waitForAll("200");
  const { url, auditLines } = await startDashboard(t, "--store", store);
  const { page, trouble } = await openPage(t, url);
  await page.getByRole("link", { name: "Processes" }).click();
  await page.getByText("2 processes on 1 machine").waitFor();
  await page.getByRole("link", { name: "Hosts" }).click();
  await page.getByRole("button", { name: /^127\.0\.0\.1, circuit closed/ }).click();
  const order = async (button: string, title: string, fields: Readonly<Record<string, string>>, isForced = false) => {
    await page.getByRole("button", { name: button, exact: true }).click();
    for (const [label, value] of Object.entries(fields)) await page.getByLabel(label, { exact: true }).fill(value);
    if (isForced) await page.getByLabel("Replace the policy, also by looser limits").check();
    await page.getByRole("button", { name: title, exact: true }).click();
  };
  const applied = (title: string) => page.getByText(`${title}: applied by 2 of 2 processes`).waitFor();

  await order("Open …", "Open the circuit", { Seconds: "600", Reason: "outage" });
  await applied("Open the circuit");
  await waitForAll("DOCSTOKG_BREAKER_OPEN");
  await order("Close …", "Close the circuit", { Reason: "over" });
  await applied("Close the circuit");
  await waitForAll("200");

  await order("Hold …", "Hold the calls", { Seconds: "600", Reason: "quota" });
  await applied("Hold the calls");
  await waitForAll("DOCSTOKG_RATE_LIMITED");
  await page
    .getByText(/^Held by an operator, .* left: quota$/)
    .first()
    .waitFor();
  await order("Release …", "Release the calls", { Reason: "over" });
  await applied("Release the calls");
  await waitForAll("200");

  await order("Set limit …", "Set the limit", { Rates: "1/HOUR", Seconds: "600", Reason: "<b>slow</b> disk" });
  await applied("Set the limit");
  await waitForAll("DOCSTOKG_RATE_LIMITED");
  const shown = /^Limit 1\/HOUR instead of 20\/SECOND, .* left, ordered by dashboard, 127\.0\.0\.1: <b>slow<\/b> disk$/;
  await page.getByText(shown).first().waitFor();
  await order("Reset limit …", "Reset the limit", { Reason: "over" });
  await applied("Reset the limit");
  await waitForAll("200");

  await order("Set limit …", "Set the limit", { Rates: "500/SECOND", Seconds: "600", Reason: "load test" });
  await page
    .getByText(/400: 500\/SECOND is looser than 20\/SECOND of 127\.0\.0\.1 \(metadata\) in the policy/)
    .waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await order("Set limit …", "Set the limit", { Rates: "500/SECOND", Seconds: "600", Reason: "load test" }, true);
  await applied("Set the limit");
  await page.getByText("looser than the policy", { exact: true }).first().waitFor();
  const lines = (await auditLines(7)).map(line => line.replace(/^\S+ /, ""));
  assert.deepEqual(lines.slice(4, 6), [
    "set-limit 1/HOUR 127.0.0.1 for 600 s by 127.0.0.1: <b>slow</b> disk (applied by 2 of 2 processes)",
    "reset-limit 127.0.0.1 by 127.0.0.1: over (applied by 2 of 2 processes)",
  ]);
  assert.match(lines[6] ?? "", /^set-limit 500\/SECOND, forced 127\.0\.0\.1 for 600 s by 127\.0\.0\.1: load test /);
  // The browser itself reports the order that the server has refused.
  assert.deepEqual(
    trouble.filter(text => !text.includes("400 (Bad Request)")),
    [],
  );
});

test("demo --dashboard shows its run, also after the end, until Ctrl-C", async t => {
  const { promise: printed, resolve: print } = Promise.withResolvers<string>();
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  let text = "";
  let interrupt: () => void = () => assert.fail("no listener");
  const write = (part: string) => {
    text += part;
    const [, url] = /^Dashboard: (\S+)$/m.exec(text) ?? [];
    if (url !== undefined) print(url);
    if (text.includes("stays open until Ctrl-C")) end();
  };
  const io: Io = {
    argv: ["demo", "--works", "3", "--dashboard"],
    env: {},
    stdout: { write },
    stderr: { write },
    onInterrupt: listener => {
      interrupt = listener;
      return () => undefined;
    },
  };
  const exitCode = runProgram(docstokg, io);
  t.after(() => interrupt());
  const { origin, searchParams } = new URL(await printed);
  const read = async () => (await (await fetch(`${origin}/state?${searchParams}`)).json()) as DashboardState;
  const { about, run } = await read();
  assert.deepEqual([about.kind, run?.state, run?.command], ["hub", "running", "demo"]);
  assert.deepEqual(about.actions, [
    "open",
    "close",
    "half-open",
    "hold",
    "release",
    "set-limit",
    "reset-limit",
    "pause",
    "resume",
    "retry",
  ]);
  await ended;
  const after = await read();
  assert.equal(after.trouble, "The run has ended, and the page shows its last state.");
  assert.deepEqual([after.run?.state, after.run?.pending, after.run?.timeLeftMs], ["ended", 0, null]);
  const headers = { "content-type": "application/json", origin, "x-docstokg-action": about.actionToken };
  const body = JSON.stringify({ action: "pause", reason: "maintenance" });
  const refused = await fetch(`${origin}/actions?${searchParams}`, { method: "POST", headers, body });
  assert.deepEqual([refused.status, await refused.text()], [400, "400: the run has ended\n"]);
  interrupt();
  assert.equal(await exitCode, 0);
});

test("the page of a run shows the history of a failed work, and says when the run has no such work", {
  skip,
}, async t => {
  const { folder } = await temporaryFolder();
  const manifest = await openManifest(join(folder, "manifest.sqlite"), systemTime);
  const run = await manifest.beginRun("run list.csv");
  const key = "doi:10.1/<b>a</b>";
  await manifest.works.add(run, [{ key, ids: { doi: "10.1/<b>a</b>" } }], { isPresent: () => false });
  const [taken] = await manifest.queue.take(run, "", systemTime.wallMs(), 1);
  const id = taken?.work.id ?? assert.fail();
  const request = { step: "ask", resolver: "openalex", url: "https://x.example/a?key=s3cret", elapsedMs: 3 } as const;
  await manifest.recordAttempt(run, id, { ...request, status: 503, reason: "http-status" });
  await manifest.fail(id, "http-status", "503 from x.example");
  await manifest.endRun(run, "ended");
  await manifest.close();
  const { url } = await startDashboard(t, "--run", folder);
  const { page, trouble } = await openPage(t, `${url}#/run`);
  await page.getByRole("button", { name: key }).click();
  const row = page.locator(".history tbody tr");
  await row.waitFor();
  assert.match((await row.textContent()) ?? "", /openalexx\.example503http-status/);
  assert.doesNotMatch((await page.content()) ?? "", /s3cret|<b>a/);
  await page.getByLabel("Identifier of a work").fill("doi:10.1/none");
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByText("The run has no work doi:10.1/none.").waitFor();
  // The browser itself reports the status 404.
  assert.deepEqual(
    trouble.filter(text => !text.includes("404")),
    [],
  );
});

test("a folder without a run, and a store given together with a run, are refused by name", async () => {
  const { folder } = await temporaryFolder();
  const run = async (...argv: string[]) => (await runCli(["dashboard", ...argv])).stderr;
  assert.match(await run("--run", folder), /--run: manifest not found: .*manifest\.sqlite\n/);
  assert.match(await run("--run", folder, "--store", "multiprocess"), /--store: has no effect with --run/);
});

test("a refused token closes the manifest", async t => {
  const { folder } = await temporaryFolder();
  await (await openManifest(join(folder, "manifest.sqlite"), systemTime)).close();
  await writeFile(join(folder, "short"), "secret\n");
  const close = t.mock.method(SqliteManifest.prototype, "close");
  const { stderr } = await runCli(["dashboard", "--run", folder, "--token-file", join(folder, "short")]);
  assert.match(stderr, /--token-file: token must have at least 16/);
  assert.equal(close.mock.callCount(), 1);
});

test("every loopback address needs no token file, and the page is served under its name", async t => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  for (const [address, name] of [
    ["127.0.0.2", "127.0.0.2"],
    ["127.1", "127.0.0.1"],
    ["0:0:0:0:0:0:0:1", "[::1]"],
  ] as const) {
    const { url, audit } = await startDashboard(t, "--store", store, "--listen", address);
    assert.equal(new URL(url).hostname, name);
    assert.equal((await fetch(url.replace("/?", "/state?"))).status, 200);
    assert.equal(audit(), "");
  }
});

test("an address for other machines needs a token file, and invalid values are refused by name", async () => {
  const { store, folder } = await temporaryFolder();
  await createStoreFile(store);
  const run = async (...argv: string[]) => {
    const { exitCode, stderr } = await runCli(["dashboard", "--store", store, ...argv]);
    return `${exitCode} ${stderr}`;
  };
  assert.match(await run("--listen", "0.0.0.0"), /^2 .*--listen: 0\.0\.0\.0 can be reached from other machines/);
  assert.match(await run("--port", "70000"), /^2 .*--port: "70000" is not a whole number from 0 to 65535/);
  assert.match(await run("--token-file", join(folder, "none")), /^2 .*--token-file: file not found: /);
  await writeFile(join(folder, "short"), "secret\n");
  assert.match(await run("--token-file", join(folder, "short")), /^2 .*--token-file: token must have at least 16/);
  await writeFile(join(folder, "token"), "0123456789abcdef\n");
  // An address for documentation, which no machine has.
  const foreign = await run("--listen", "192.0.2.1", "--token-file", join(folder, "token"));
  assert.match(foreign, /^2 .*--listen: cannot listen on 192\.0\.2\.1:0: .*EADDRNOTAVAIL/);
});

/** A process that has called more hosts than it publishes: 127.0.1.1 to 127.0.1.220. */
async function startCrawler(t: TestContext, store: string) {
  const server = createServer((_, response) => response.end()).listen(0, "0.0.0.0");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const hub = await createHub({ env: {}, store: store as `sqlite:${string}`, cache: false });
  t.after(async () => {
    await hub.close();
    server.closeAllConnections();
    server.close();
  });
  for (let n = 1; n <= 220; n += 1) await (await hub.fetch(`http://127.0.1.${n}:${port}/`)).text();
}

test("the page says that its list is partial, and finds a host that is not listed by asking the processes", {
  skip,
}, async t => {
  const { store } = await temporaryFolder();
  await startCrawler(t, store);
  const { url } = await startDashboard(t, "--store", store);
  const { page, trouble } = await openPage(t, url);
  const said = "Not all hosts are listed: 1 process has more keys than the 200 that a process publishes.";
  await page.getByText(said).waitFor();
  const ask = page.getByRole("button", { name: /^Ask the processes for / });
  assert.equal(await ask.isVisible(), false, "there is nothing to ask for");
  await page.getByLabel("Filter hosts").fill("127.0.1.220");
  await page.getByText("No host matches the filter.").waitFor();
  await ask.click();
  await page.getByRole("button", { name: /^127\.0\.1\.220, circuit closed/ }).waitFor();
  await page.getByText("127.0.1.220 is listed now.").waitFor();
  await page.getByLabel("Filter hosts").fill("never.example");
  await ask.click();
  await page.getByText("no running process has called never.example.").waitFor();
  await page.getByLabel("Filter hosts").fill("not a host");
  await ask.click();
  await page.getByText(/^400: /).waitFor();
  await page.getByRole("link", { name: "Processes" }).click();
  await page.getByRole("cell", { name: "more than 200" }).waitFor();
  // The browser reports the response of the invalid name.
  assert.deepEqual(
    trouble.filter(text => !text.includes("400")),
    [],
  );

  const readOnly = await startDashboard(t, "--store", store, "--read-only");
  const { page: shown } = await openPage(t, readOnly.url);
  await shown.getByText(said).waitFor();
  await shown.getByLabel("Filter hosts").fill("127.0.1.219");
  await shown.getByText("No host matches the filter.").waitFor();
  assert.equal(await shown.getByRole("button", { name: /^Ask the processes for / }).isVisible(), false);
  const { origin: at, searchParams } = new URL(readOnly.url);
  const { about } = (await (await fetch(`${at}/state?${searchParams}`)).json()) as DashboardState;
  const asked = await fetch(`${at}/ask?${searchParams}`, {
    method: "POST",
    headers: { "content-type": "application/json", origin: at, "x-docstokg-action": about.actionToken },
    body: JSON.stringify({ name: "127.0.1.219" }),
  });
  assert.deepEqual([asked.status, await asked.text()], [403, "403: this dashboard cannot ask processes\n"]);
});

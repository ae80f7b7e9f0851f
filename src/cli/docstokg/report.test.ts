import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runCli } from "../../../test/cli/kit.ts";
import { hubFor, serve } from "../../../test/http/kit.ts";
import { acquire, at, attempt, call, RUN } from "../../../test/telemetry/kit.ts";
import { syntheticRun } from "../../../test/telemetry/synthetic-run.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { openManifest } from "../../harvest/manifest/manifest.ts";
import type { TelemetryEvent } from "../../telemetry/events.ts";
import { openRunTelemetry } from "../../telemetry/run-telemetry.ts";
import { sqliteSink } from "../../telemetry/sinks/sqlite-sink.ts";
import { systemTime } from "../../time/system-time.ts";

const report = (...argv: readonly string[]) => runCli(["report", ...argv]);

function writeRun(file: string, events: readonly TelemetryEvent[]): void {
  writeFileSync(file, events.map(event => `${JSON.stringify(event)}\n`).join(""));
}

const small: readonly TelemetryEvent[] = [
  at(0, "run_started", { program: "docstokg run", version: "1.2.3" }),
  attempt(10, "a.example", { rate_wait_ms: 250, elapsed_ms: 150 }),
  call(10, "a.example", { rate_delay_ms: 250, elapsed_ms: 400 }),
  call(20, "a.example", { from_cache: true, attempts: 0 }),
  acquire(30, "a.example", "refused"),
  at(60_000, "run_ended", {}),
];

test("the report of a folder prints the summary of its latest run", async () => {
  const folder = temporaryFolder("telemetry");
  writeRun(join(folder, "telemetry.jsonl"), small);
  const { exitCode, stdout, stderr } = await report(folder);
  assert.deepEqual([exitCode, stderr], [0, ""]);
  assert.equal(
    stdout,
    `run-1: docstokg run 1.2.3, 2023-11-14 22:13:20 UTC, for 1 min

calls              2: 1 answered, 1 cached, 0 throttled, 0 failed, 0 refused, 0 aborted
cache              50 % hits (1, 0 of them stale), 0 revalidated, 0 coalesced
429/503            0 % of 1 attempt: 0 and 0
waits              p50 250 ms, p95 250 ms, max 250 ms
limiter            0 acquired, 1 blocked, 0 HEAD requests not counted
breakers           0 calls refused, 0 openings of circuits and cooldowns (0.0 per hour)
after openings     no call after an opening yet
saved by breakers  0 ms
most delayed       a.example 250 ms
most blocked       a.example 1

host       role      calls  cached  failed  refused  429/503  wait p50  p95
a.example  metadata  2      1       0       0        0 %      250 ms    250 ms

key        role      acquired  blocked  HEAD not counted  AIMD multiplier
a.example  metadata  0         1        0
`,
  );
});

test("JSONL and SQLite telemetry give the same numbers", async () => {
  const folder = temporaryFolder("telemetry");
  const events = syntheticRun();
  writeRun(join(folder, "run.jsonl"), events);
  const sink = await sqliteSink(join(folder, "run.db"), { maxQueued: 100_000 });
  for (const event of events) sink.take(event);
  await sink.close?.();
  const lines = await report(join(folder, "run.jsonl"), "--json");
  const tables = await report(join(folder, "run.db"), "--json");
  assert.equal(lines.exitCode, 0);
  const summary = JSON.parse(lines.stdout);
  assert.ok(summary.calls > 1000 && summary.breaker.opens === 6);
  assert.deepEqual(JSON.parse(tables.stdout), summary);
});

test("of several runs the latest is reported, or the one with the given id or prefix", async () => {
  const folder = temporaryFolder("telemetry");
  const file = join(folder, "telemetry.jsonl");
  const run = (run_id: string, ms: number) => ({ ...call(ms, `${run_id}.example`), run_id });
  writeRun(file, [run("20261101-a", 0), run("20261102-b", 5000), run("20261102-c", 2000)]);
  const idOf = async (...argv: readonly string[]) => JSON.parse((await report(...argv, "--json")).stdout).runId;
  assert.equal(await idOf(folder), "20261102-b");
  assert.equal(await idOf("20261101", "--telemetry", file), "20261101-a");
  assert.equal(await idOf("20261102-c", "--telemetry", folder), "20261102-c");
  const ambiguous = await report("20261102", "--telemetry", file);
  assert.equal(ambiguous.exitCode, 2);
  assert.match(ambiguous.stderr, /several run ids start with "20261102"; give a longer prefix/);
  const unknown = await report("nope", "--telemetry", file);
  assert.equal(unknown.exitCode, 2);
  assert.match(unknown.stderr, /run "nope" not found; latest runs: 20261101-a, 20261102-c, 20261102-b/);
  assert.match(
    (await report(folder)).stdout,
    /^2 more runs in this telemetry; choose one with --telemetry <path> <run id>$/m,
  );
});

test("a run that has made no call, such as a retry with nothing to do, is reported only if no run has made one", async () => {
  const folder = temporaryFolder("telemetry");
  const idleRun = (run_id: string, ms: number) =>
    [
      at(ms, "run_started", { program: "docstokg retry", version: "1.2.3" }),
      at(ms, "policy_loaded", { config_hash: "abc" }),
      at(ms, "store_away", { processes: 2, mode: "share", message: "no answer" }),
      at(ms, "run_ended", {}),
    ].map(event => ({ ...event, run_id }));
  for (const [name, events, expected] of [
    ["real", [...idleRun("idle-1", 0), ...small, ...idleRun("idle-2", 90_000)], RUN],
    ["idle", [...idleRun("idle-1", 0), ...idleRun("idle-2", 90_000)], "idle-2"],
  ] as const) {
    writeRun(join(folder, `${name}.jsonl`), events);
    const sink = await sqliteSink(join(folder, `${name}.db`));
    for (const event of events) sink.take(event);
    await sink.close?.();
    for (const file of [`${name}.jsonl`, `${name}.db`])
      assert.equal(JSON.parse((await report(join(folder, file), "--json")).stdout).runId, expected, file);
  }
});

test("--out names the folder of the run, as for status, also to find a run id in it", async () => {
  const folder = join(temporaryFolder("telemetry"), "p1");
  mkdirSync(folder);
  writeRun(join(folder, "telemetry.jsonl"), [call(0, "a.example"), { ...call(50, "b.example"), run_id: "run-2" }]);
  const idOf = async (...argv: readonly string[]) => JSON.parse((await report(...argv, "--json")).stdout).runId;
  assert.deepEqual([await idOf("--out", folder), await idOf(RUN, "--out", folder)], ["run-2", RUN]);
  assert.equal((await report(RUN, "run-2", "--out", folder)).exitCode, 0);
  const both = await report("--out", folder, "--telemetry", folder);
  assert.deepEqual(
    [both.exitCode, both.stderr],
    [2, "docstokg: --out: has no effect with --telemetry, which names the telemetry\n"],
  );
  const missing = await report("--out", join(folder, "none"));
  assert.deepEqual([missing.exitCode, missing.stderr], [2, `docstokg: ${join(folder, "none")}: no such file\n`]);
});

test("missing telemetry is an error that names what is missing", async () => {
  const folder = temporaryFolder("telemetry");
  const empty = await report(folder);
  assert.equal(empty.exitCode, 2);
  assert.match(empty.stderr, /no telemetry in this folder: expected telemetry\.jsonl or telemetry\.db/);
  const here = await report();
  const message = "[run]: no telemetry in the current folder; name the folder of a run, such as papers";
  assert.deepEqual([here.exitCode, here.stderr], [2, `docstokg: ${message}\n`]);
  writeFileSync(join(folder, "telemetry.jsonl"), "");
  assert.match((await report(folder)).stderr, /contains no events/);
  writeRun(join(folder, "telemetry.jsonl"), small);
  const unwritable = await report(folder, "--html", join(folder, "no", "such", "report.html"));
  assert.equal(unwritable.exitCode, 1);
  assert.match(unwritable.stderr, /--html: cannot write .*report\.html: folder not found: /);
});

test("--html does not replace the telemetry or the manifest that the report reads", async () => {
  const folder = temporaryFolder("telemetry");
  const [telemetry, manifest] = [join(folder, "telemetry.jsonl"), join(folder, "manifest.sqlite")];
  writeRun(telemetry, small);
  await (await openManifest(manifest, systemTime)).close();
  const before = [telemetry, manifest].map(path => readFileSync(path));
  for (const run of [folder, telemetry])
    for (const page of [telemetry, manifest]) {
      const { exitCode, stdout, stderr } = await report(run, "--html", page);
      const message = `--html: this command reads ${page}, and would replace it; name another file`;
      assert.deepEqual([exitCode, stdout, stderr], [2, "", `docstokg: ${message}\n`]);
    }
  assert.deepEqual(
    [telemetry, manifest].map(path => readFileSync(path)),
    before,
  );
});

test("--html replaces the page, and leaves no temporary file", async () => {
  const folder = temporaryFolder("telemetry");
  writeRun(join(folder, "telemetry.jsonl"), syntheticRun());
  const page = join(folder, "report.html");
  writeFileSync(page, "old");
  const { exitCode, stdout } = await report(folder, "--html", page);
  assert.equal(exitCode, 0);
  assert.match(stdout, /HTML report: .*report\.html\n$/);
  assert.match(readFileSync(page, "utf8"), /^<!doctype html>.*<\/html>\n$/s);
  assert.deepEqual(readdirSync(folder).toSorted(), ["report.html", "telemetry.jsonl"]);
});

test("unreadable lines, unknown events and dropped events are counted in text and JSON", async () => {
  const folder = temporaryFolder("telemetry");
  const file = join(folder, "telemetry.jsonl");
  writeRun(file, [...small.slice(0, 3), at(40, "telemetry_dropped", { sink: "jsonl", dropped: 1234 })]);
  writeFileSync(
    file,
    `${readFileSync(file, "utf8")}{"ts":1,"event_type":"from_the_future","run_id":"${RUN}","config_hash":""}\n{"ts":17`,
  );
  const { stdout } = await report(folder);
  assert.match(stdout, /\(no end recorded: still running, or killed\)$/m);
  assert.match(stdout, /^warning: 1,234 events were dropped/m);
  assert.match(stdout, /^warning: 1 line could not be read$/m);
  assert.match(stdout, /^warning: 1 event of types unknown to this version$/m);
  const json = JSON.parse((await report(folder, "--json")).stdout);
  assert.deepEqual([json.dropped, json.unreadableLines, json.unknownEvents], [1234, 1, 1]);
});

test("control characters in a name do not reach the terminal", async () => {
  const folder = temporaryFolder("telemetry");
  writeRun(join(folder, "telemetry.jsonl"), [call(0, "\u001b[2Jevil\u0007.example\u202e")]);
  const { stdout } = await report(folder);
  assert.match(stdout, /·\[2Jevil·\.example·/);
  assert.ok(![...stdout].some(character => character !== "\n" && /\p{C}/u.test(character)));
});

for (const format of ["jsonl", "sqlite"] as const) {
  test(`the telemetry of a hub is recorded in its folder (${format}), served as metrics, and reported`, async t => {
    const folder = join(temporaryFolder("telemetry"), "runs", "one");
    mkdirSync(folder, { recursive: true });
    const server = await serve(t, (_, response) => response.end("ok"));
    const { telemetry, file, metricsUrl, close } = await openRunTelemetry(folder, {
      program: "test run",
      format,
      metricsPort: 0,
      runId: "the-run",
    });
    const hub = await hubFor(t, { telemetry: [telemetry.listener] });
    telemetry.watch(hub);
    for (const path of ["a", "b", "c"]) await (await hub.fetch(`${server.origin}/${path}`)).text();
    const metrics = await (await fetch(metricsUrl ?? "")).text();
    assert.match(metrics, /http_requests_total\{host="127\.0\.0\.1[^"]*",role="metadata",outcome="answered"\} 3/);
    assert.match(metrics, /^docstokg_http_in_flight 0$/m);
    await close();
    await assert.rejects(fetch(metricsUrl ?? ""));
    const summary = JSON.parse((await report(folder, "--json")).stdout);
    assert.deepEqual(
      [summary.runId, summary.program, summary.calls, summary.hasEnded, summary.configHashes],
      ["the-run", "test run", 3, true, [hub.configHash]],
    );
    assert.ok(file.startsWith(folder));
  });
}

test("a run that does not exist is named in the error", async () => {
  const { exitCode, stderr } = await report("no-such-folder");
  assert.equal(exitCode, 2);
  assert.match(stderr, /^docstokg: no-such-folder: no such file or folder/);
});

const shadowed: readonly TelemetryEvent[] = [
  ...small,
  at(100, "ratelimit.shadow", {
    key: "a.example",
    role: "metadata",
    would: "wait",
    wait_ms: 750,
    constraint: "1/SECOND of a.example",
  }),
  at(200, "breaker_shadow", { host: "b.example", role: "metadata", reason: "failures", remaining_ms: 9000 }),
];

test("the report says what enforcing would have done to a run in shadow mode, by host", async () => {
  const folder = temporaryFolder("telemetry");
  writeRun(join(folder, "telemetry.jsonl"), shadowed);
  const { stdout } = await report(folder);
  assert.match(
    stdout,
    /^shadow mode +enforcing would have caused 1 wait of 750 ms in total; 0 refused by limits, 1 by breakers$/m,
  );
  assert.match(stdout, /^in shadow mode +would wait +for +refused by limits +refused by breakers$/m);
  assert.match(stdout, /^a\.example +1 +750 ms +0 +0$/m);
  assert.match(stdout, /^b\.example +0 +0 ms +0 +1$/m);
  assert.doesNotMatch((await report(await smallRun(folder))).stdout, /shadow/);
});

/** Writes the small run to a folder of its own. */
async function smallRun(folder: string): Promise<string> {
  const inner = join(folder, "small");
  mkdirSync(inner);
  writeRun(join(inner, "telemetry.jsonl"), small);
  return inner;
}

test("two runs are compared by host: throttles, waits, openings, refused calls and time saved", async () => {
  const folder = temporaryFolder("telemetry");
  const before = await smallRun(folder);
  const after = join(folder, "after");
  mkdirSync(after);
  const change = { host: "b.example", role: "metadata", reset_timeout_s: 30, last_rate_delay_ms: 0 } as const;
  writeRun(join(after, "telemetry.jsonl"), [
    at(0, "run_started", { program: "docstokg run", version: "1.2.3" }),
    attempt(10, "a.example", { status: 429, outcome: "throttled", rate_wait_ms: 50 }),
    attempt(20, "a.example", { rate_wait_ms: 150 }),
    attempt(30, "b.example", { status: 503, outcome: "throttled", elapsed_ms: 400 }),
    at(40, "breaker_state_change", { ...change, old: "closed", new: "open" }),
    call(50, "b.example", {
      status: undefined,
      error: "DOCSTOKG_BREAKER_OPEN",
      attempts: 0,
      breaker_recorded: undefined,
      breaker_open_remaining_ms: 30_000,
    }),
    at(3_600_000, "run_ended", {}),
  ]);
  const { exitCode, stdout, stderr } = await report(before, after);
  assert.deepEqual([exitCode, stderr], [0, ""]);
  assert.match(stdout, /^A {2}run-1, .* UTC, for 1 min\nB {2}run-1, .* UTC, for 1 h/);
  assert.match(
    stdout,
    /^host +run +requests +429 +503 +mean wait +breaker openings +openings per hour +refused +time saved$/m,
  );
  assert.match(stdout, /^a\.example +A +1 +0 % +0 % +250 ms +0 +0\.0 +0 +0 ms$/m);
  assert.match(stdout, /^ +B +2 +50 % +0 % +100 ms +0 +0\.0 +0 +0 ms$/m);
  assert.match(stdout, /^b\.example +A +0 +0 % +0 % +0 ms +0 +0\.0 +0 +0 ms$/m);
  assert.match(stdout, /^ +B +1 +0 % +100 % +0 ms +1 +1\.0 +1 +400 ms$/m);
  const json = JSON.parse((await report(before, after, "--json")).stdout);
  assert.deepEqual(
    json.hosts.map(({ host }: { host: string }) => host),
    ["a.example", "b.example"],
  );
  assert.deepEqual([json.total.before.attempts, json.total.after.attempts, json.total.after.opens], [1, 3, 1]);
  const withPage = await report(before, after, "--html", join(folder, "x.html"));
  assert.equal(withPage.exitCode, 2);
  assert.match(withPage.stderr, /--html: has no effect when two runs are compared/);
  assert.equal((await report(before, join(folder, "nowhere"))).exitCode, 2);
});

test("two runs are said to have used the same policy only if the policy of both is known and equal", async () => {
  const folder = temporaryFolder("telemetry");
  const fileWith = (name: string, config_hash: string) => {
    const file = join(folder, `${name}.jsonl`);
    writeRun(file, [{ ...call(0, "a.example"), config_hash }]);
    return file;
  };
  const isSame = async (one: string, other: string) =>
    /^Both runs used the same policy\.$/m.test((await report(fileWith("A", one), fileWith("B", other))).stdout);
  assert.deepEqual(
    [await isSame("abc", "abc"), await isSame("abc", "abd"), await isSame("", ""), await isSame("abc", "")],
    [true, false, false, false],
  );
});

test("the report has the works of the manifest beside the telemetry: results, files, resolvers, and deferred requests", async () => {
  const folder = temporaryFolder("telemetry");
  writeRun(join(folder, "telemetry.jsonl"), [
    ...small,
    call(40, "a.example", {
      status: undefined,
      error: "DOCSTOKG_RATE_LIMITED",
      attempts: 0,
      breaker_recorded: undefined,
    }),
  ]);
  const manifest = await openManifest(join(folder, "manifest.sqlite"), systemTime);
  const run = await manifest.beginRun("run");
  const works = ["a", "b", "<i>c"].map(name => ({ key: `doi:10.1/${name}`, ids: { doi: `10.1/${name}` } }));
  await manifest.works.add(run, works, { isPresent: () => true });
  const attempted = { resolver: "openalex", url: "https://x.example/a", reason: "found", elapsedMs: 250 } as const;
  await manifest.recordAttempt(run, 1, { ...attempted, step: "ask", bytes: 100 });
  await manifest.recordAttempt(run, 1, { ...attempted, step: "fetch", bytes: 4000, elapsedMs: 1500 });
  await manifest.recordAttempt(run, 2, { ...attempted, step: "ask" });
  await manifest.finish(run, 1, "ok", {
    ...{ sha256: "ab".repeat(32), path: "a.pdf", bytes: 4000, mediaType: "application/pdf" },
    ...{ urlHash: "00", url: "https://x.example/a.pdf", resolver: "openalex" },
  });
  await manifest.fail(3, "not-open", "<script>");
  await manifest.close();
  const page = join(folder, "report.html");
  const { exitCode, stdout, stderr } = await report(folder, "--html", page);
  assert.deepEqual([exitCode, stderr], [0, ""]);
  assert.match(stdout, /^works of the manifest: 1 done, 1 failed, 1 unfinished; 1 file, /m);
  assert.match(stdout, /^openalex +2 +1 +2 +500 ms +1 +1\.5 s +/m);
  const text = readFileSync(page, "utf8");
  for (const part of [
    "<td>not-open</td><td>1</td>",
    "<td>application/pdf</td><td>1</td><td>4.00 kB</td>",
    '<th scope="row">openalex</th><td>2</td><td>1</td><td>50 %</td><td>2</td><td>500 ms</td><td>1</td><td>1.5 s</td>',
    "<td>2</td><td>1</td><td>250 ms</td>",
    "doi:10.1/&lt;i&gt;c",
    "&lt;script&gt;",
  ])
    assert.ok(text.includes(part), part);
  assert.ok(!text.includes("<script>"));
  const { works: counted } = JSON.parse((await report(folder, "--json")).stdout);
  assert.deepEqual(counted.works, { total: 3, done: 1, failed: 1, pending: 1, merged: 0 });
  assert.deepEqual(
    [counted.yields[0].stored, counted.yields[0].downloadMs, counted.fileKinds[0].maxBytes],
    [1, 1500, 4000],
  );
  const wrong = await report(folder, "--manifest", join(folder, "none.sqlite"));
  assert.equal(wrong.exitCode, 2);
  assert.match(wrong.stderr, /manifest not found: .*none\.sqlite/);
});

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { mkdir, readdir, readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ontofetch } from "../../src/cli/ontofetch.ts";
import { runProgram } from "../../src/cli/program.ts";
import { FileLock } from "../../src/files/file-lock.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { runIn } from "../cli/kit.ts";
import { startProxy } from "../http/connect-proxy.ts";
import { serve } from "../http/kit.ts";
import { collectOutput } from "../process-output.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const file = (version: string) =>
  `format-version: 1.2\ndata-version: releases/${version}\n\n[Term]\nid: X:1\nname: one\n`;

/** A folder, a server with one ontology, and the program. */
async function setUp(t: TestContext) {
  const folder = temporaryFolder("ontofetch");
  const state = { version: "2026-11-01", isHtml: false };
  const server = await serve(t, (request, response) => {
    const etag = `"${state.version}"`;
    if (state.isHtml)
      response.writeHead(200, { "content-type": "text/plain" }).end("<!doctype html><title>Sign in</title>");
    else if (request.headers["if-none-match"] === etag) response.writeHead(304, { etag }).end();
    else
      response
        .writeHead(200, { etag, "content-type": "text/html" })
        .end(request.method === "HEAD" ? "" : file(state.version));
  });
  const sources = join(folder, "sources.yaml");
  const url = `${server.origin}/x.obo`;
  await writeFile(sources, `allow_private: true\nsources:\n  x: { resolver: direct, extras: { url: "${url}" } }\n`);
  const run = (command: string, env: Readonly<Record<string, string>> = {}) =>
    runIn(ontofetch, [...command.split(" "), "--sources", sources], { env });
  return { folder, sources, server, state, url, run };
}

test("init writes a valid file and never overwrites one", async t => {
  const { folder, run, sources } = await setUp(t);
  const before = await readFile(sources, "utf8");
  const refused = await run("init");
  assert.equal(refused.exitCode, 2);
  assert.match(refused.stderr, /already exists and was not overwritten; choose another file with --sources/);
  assert.equal(await readFile(sources, "utf8"), before);

  const other = join(folder, "other.yaml");
  const argv = (command: string) => [...command.split(" "), "--sources", other];
  const io = { env: {}, stdout: { write: () => true }, stderr: { write: (text: string) => assert.fail(text) } };
  assert.equal(await runProgram(ontofetch, { ...io, argv: argv("init") }), 0);
  assert.equal(await runProgram(ontofetch, { ...io, argv: argv("rl doctor") }), 0);
});

test("plan, pull, show and validate print tables, and JSON with --json", async t => {
  const { folder, run, state, url } = await setUp(t);
  const plan = await run("plan");
  assert.equal(plan.exitCode, 0);
  assert.match(plan.stdout, /^id +resolver +format +version +size +licence +url\nx +direct +obo +\? +\? +\? +http:/);
  const { plan: items } = JSON.parse((await run("plan --json")).stdout);
  assert.deepEqual([items[0].id, items[0].url, items[0].etag], ["x", url, '"2026-11-01"']);
  assert.match((await run("plan diff")).stdout, /\nx +added\n$/);
  assert.equal((await run("plan diff --exit-code")).exitCode, 1);

  assert.deepEqual(await run("pull"), {
    exitCode: 0,
    stdout: "x: fetched, version 2026-11-01, obo, 80 B\n",
    stderr: "",
  });
  assert.equal((await run("pull")).stdout, "x: unchanged, version 2026-11-01, obo, 80 B\n");
  assert.equal((await run("pull --frozen")).stdout, "x: already stored, version 2026-11-01, obo, 80 B\n");
  assert.deepEqual(JSON.parse((await run("plan diff --exit-code --json")).stdout).changes, [
    { id: "x", change: "same", fields: [] },
  ]);

  state.version = "2026-11-08";
  assert.match((await run("plan diff")).stdout, /x +changed +etag: "2026-11-01" -> "2026-11-08"\n/);
  const { results } = JSON.parse((await run("pull --json")).stdout);
  assert.equal(results[0].manifest.version, "2026-11-08");
  const show = await run("show");
  assert.match(show.stdout, /\nx +2026-11-08 +locked +obo +80 B .*\nx +2026-11-01 +obo +80 B /);
  assert.equal((await run("show missing")).exitCode, 1);
  assert.equal(JSON.parse((await run("show x --json")).stdout).versions.length, 2);

  assert.deepEqual(await run("validate"), {
    exitCode: 0,
    stdout: "x 2026-11-08: valid\nx 2026-11-01: valid\n",
    stderr: "",
  });
  await writeFile(join(folder, "ontologies", "x", "2026-11-01", "manifest.json"), "{}");
  const unreadable = await run("validate");
  assert.equal(unreadable.exitCode, 1);
  assert.equal(unreadable.stderr, "x 2026-11-01: manifest.json is missing or invalid\n");
  await truncate(join(folder, "ontologies", "x", "2026-11-08", "x.obo"), 40);
  const damaged = await run("validate x");
  assert.equal(damaged.exitCode, 1);
  assert.match(damaged.stderr, /^x 2026-11-08: content changed: sha256 is [0-9a-f]{64}, the manifest has /);
});

test("a version in a file cannot send control characters to the terminal", async t => {
  const { folder, sources, run } = await setUp(t);
  const server = await serve(t, (request, response) =>
    response.end(request.method === "HEAD" ? "" : file(`a\u001b]0;owned\u0007${server.requests.length}`)),
  );
  const url = `${server.origin}/x.obo`;
  await writeFile(sources, `allow_private: true\nsources:\n  x: { resolver: direct, extras: { url: "${url}" } }\n`);
  const printed = [];
  for (const command of [
    "pull",
    "pull",
    "show",
    "validate",
    "versions x",
    "diff x x",
    "path x@none",
    "prune --keep 1",
  ]) {
    const { stdout, stderr } = await run(command);
    printed.push(stdout + stderr);
  }
  assert.match(printed.join(""), /^x: fetched, version a\ufffd\]0;owned\ufffd\d/);
  assert.match(printed.join(""), /1 version, .* B\n$/);
  assert.doesNotMatch(printed.join(""), /[^\P{Cc}\n]/u);
  assert.equal((await readdir(join(folder, "ontologies", "x"))).length, 1);
});

test("an HTML page instead of a file is rejected, and the stored version stays", async t => {
  const { folder, run, state } = await setUp(t);
  await run("pull");
  state.isHtml = true;
  const refused = await run("pull");
  assert.equal(refused.exitCode, 1);
  assert.equal(refused.stderr, "x: rejected: file is an HTML page\n");
  assert.deepEqual(await readdir(join(folder, "ontologies", "x")), ["2026-11-01"]);
  assert.equal((await run("pull --frozen")).exitCode, 0);
});

test("a host in a private network is called only with allow_private", async t => {
  const { run, sources, url, server } = await setUp(t);
  await writeFile(sources, `sources:\n  x: { resolver: direct, extras: { url: "${url}" } }\n`);
  const refused = await run("pull");
  assert.equal(refused.exitCode, 1);
  assert.equal(
    refused.stderr,
    "x: 127.0.0.1 is in a private network; set allow_private: true in sources.yaml to permit it\n",
  );
  assert.equal(server.requests.length, 0);
  assert.equal((await run("pull", { ONTOFETCH_ALLOW_PRIVATE: "true" })).exitCode, 0);
});

test("with a proxy of the environment an address in a private network is refused too", async t => {
  const { run, sources, server, url } = await setUp(t);
  const proxy = await startProxy(t, 1);
  await writeFile(sources, `sources:\n  x: { resolver: direct, extras: { url: "${url}" } }\n`);
  for (const env of [{ HTTP_PROXY: proxy.url }, { HTTP_PROXY: proxy.url, NO_PROXY: "127.0.0.1" }]) {
    const { exitCode, stderr } = await run("pull", env);
    assert.match(stderr, /^x: 127\.0\.0\.1 is in a private network/);
    assert.equal(exitCode, 1);
  }
  assert.deepEqual([proxy.targets, server.requests.length], [[], 0]);
});

test("an invalid proxy of the environment is reported in one line without its password", async t => {
  const { run } = await setUp(t);
  assert.deepEqual(await run("plan", { HTTP_PROXY: "http://user:hunter2@proxy.example.org:99999" }), {
    exitCode: 2,
    stdout: "",
    stderr:
      'ontofetch: HTTP_PROXY: "http://…@proxy.example.org:99999" is not the address of a proxy; expected http://host:port\n',
  });
});

test("versions of a service that cannot be called are the stored ones, with the reason and exit code 1", async t => {
  const { run, sources, server } = await setUp(t);
  await writeFile(sources, `sources:\n  x: { resolver: bioportal, extras: { base: "${server.origin}" } }\n`);
  const { exitCode, stderr } = await run("versions x");
  assert.equal(stderr, "x: 127.0.0.1 is in a private network; set allow_private: true in sources.yaml to permit it\n");
  assert.equal(exitCode, 1);
});

test("two versions of one source in a command line are a usage error", async t => {
  const { run, server } = await setUp(t);
  const { exitCode, stderr } = await run("pull x@2026-11-01 x@2026-11-08");
  assert.equal(
    stderr,
    "ontofetch: <id>: x is named twice with different versions: 2026-11-01 and 2026-11-08; name one version in each command\n",
  );
  assert.equal(exitCode, 2);
  assert.equal(server.requests.length, 0);
  assert.equal((await run("plan x x")).exitCode, 0);
});

test("plan diff of <id>@<version> compares with the locked version", async t => {
  const { run } = await setUp(t);
  await run("pull");
  const { changes } = JSON.parse((await run("plan diff x@2026-11-01 --json")).stdout);
  assert.deepEqual(changes, [{ id: "x", change: "same", fields: [] }]);
});

test("a store folder that cannot be created is reported in one line", async t => {
  const { run, sources } = await setUp(t);
  const wrong = await run(`pull --store ${sources}/below`);
  assert.equal(wrong.exitCode, 2);
  assert.match(wrong.stderr, /sources\.yaml\/below\/\.ontofetch: cannot create the folder \(ENOTDIR\)\n$/);
});

test("prune keeps the newest versions and those in the lockfile", async t => {
  const { folder, run, state } = await setUp(t);
  await run("pull");
  const locked = await readFile(join(folder, "ontologies.lock.json"), "utf8");
  for (const version of ["2026-11-02", "2026-11-03", "2026-11-04"]) {
    state.version = version;
    await run("pull");
  }
  await writeFile(join(folder, "ontologies.lock.json"), locked);
  assert.equal((await run("prune --keep nothing")).exitCode, 2);
  assert.equal((await run("prune")).exitCode, 2);
  assert.deepEqual(await run("prune --keep 2 z"), {
    exitCode: 2,
    stdout: "",
    stderr: 'ontofetch: <id>: no version of "z" in the store; valid: x\n',
  });
  assert.match(
    (await run("prune --keep 2 --dry-run")).stdout,
    /^x 2026-11-02: would be removed, 80 B\n1 version, 80 B\n$/,
  );
  assert.match((await run("prune --keep 2")).stdout, /^x 2026-11-02: removed, 80 B\n1 version, 80 B\n$/);
  assert.equal((await run("prune --keep 2")).stdout, "nothing to remove\n");
  assert.deepEqual((await readdir(join(folder, "ontologies", "x"))).sort(), ["2026-11-01", "2026-11-03", "2026-11-04"]);
});

test("prune that waits for a pull keeps the version that this pull has locked", async t => {
  const { folder, run, sources, state } = await setUp(t);
  const lockfile = join(folder, "ontologies.lock.json");
  await run("pull");
  const first = await readFile(lockfile, "utf8");
  state.version = "2026-11-02";
  await run("pull");
  const held = await FileLock.acquire(join(folder, "ontologies", ".ontofetch", "locks", "x.lock"), {
    time: systemTime,
  });
  const messages: string[] = [];
  const exitCode = await runProgram(ontofetch, {
    argv: ["prune", "--keep", "1", "--sources", sources],
    env: {},
    stdout: { write: () => true },
    stderr: {
      write: text => {
        messages.push(text);
        writeFileSync(lockfile, first);
        held.release();
      },
    },
  });
  assert.equal(exitCode, 0);
  assert.deepEqual(messages, ["x: another process has its lock; waiting\n"]);
  assert.deepEqual((await readdir(join(folder, "ontologies", "x"))).sort(), ["2026-11-01", "2026-11-02"]);
});

test("prune deletes the draft of a killed process", async t => {
  const { folder, run } = await setUp(t);
  await run("pull");
  const draft = join(folder, "ontologies", ".ontofetch", "drafts", "x");
  await mkdir(draft, { recursive: true });
  await writeFile(join(draft, "half.obo"), file("2026-11-02"));
  assert.equal((await run("prune --keep 1")).exitCode, 0);
  assert.equal(existsSync(draft), false);
});

test("doctor reports what is missing and prints no secret", async t => {
  const { run, sources, url } = await setUp(t);
  const well = await run("doctor");
  assert.equal(well.exitCode, 0);
  assert.match(well.stdout, /^sources +ok +1 in /m);
  assert.match(well.stdout, /^lockfile +warning +0 locked; not locked yet: x$/m);
  await writeFile(
    sources,
    `allow_private: true\nsources:\n  y: { resolver: bioportal }\n  x: { resolver: direct, extras: { url: "${url}" } }\n`,
  );
  const without = await run("doctor");
  assert.equal(without.exitCode, 1);
  assert.match(without.stdout, /^API key +problem +bioportal needs an API key: set BIOPORTAL_API_KEY$/m);
  await writeFile(sources, 'sources:\n  y: { resolver: bioportal, extras: { base: "https://data.example.org" } }\n');
  const elsewhere = await run("doctor");
  assert.doesNotMatch(elsewhere.stdout, /API key/);
  assert.equal(elsewhere.exitCode, 0);
  const keyed = await run("doctor --json", { BIOPORTAL_API_KEY: "0123-secret" });
  assert.equal(keyed.exitCode, 0);
  assert.doesNotMatch(keyed.stdout, /0123-secret/);
  const mistyped = await run("doctor", { ONTOFETCH_STOR: "x" });
  assert.equal(mistyped.exitCode, 1);
  assert.match(
    mistyped.stdout,
    /settings +problem +ONTOFETCH_STOR: unknown environment variable; did you mean ONTOFETCH_STORE\?/,
  );
});

test("doctor prints its other findings when the lockfile or the store cannot be read", async t => {
  const { folder, run, sources } = await setUp(t);
  const unreadable = await run(`doctor --lockfile ${folder}`);
  assert.match(unreadable.stdout, /^sources +ok .*^lockfile +problem +is a folder; expected a lockfile$/ms);
  assert.equal(unreadable.exitCode, 1);
  await run("pull");
  const file = await run(`doctor --store ${sources}`);
  assert.match(file.stdout, /^store +problem +cannot write to .*^lockfile +ok +1 locked$/ms);
  assert.equal(file.exitCode, 1);
});

test("an id that leads out of the store is not looked for", async t => {
  const { folder, run } = await setUp(t);
  await run("pull");
  await mkdir(join(folder, "outside", "1"), { recursive: true });
  assert.equal((await run("validate ../outside")).stderr, "../outside: not in the store and not in the lockfile\n");
  const { exitCode, stderr } = await run("path ../outside");
  assert.match(stderr, /^ontofetch: <id>: invalid id "\.\.\/outside"; use /);
  assert.equal(exitCode, 2);
});

test("rl doctor shows keys, their windows with those of the host, and the waits of recent runs", async t => {
  const { run } = await setUp(t);
  await run("pull --rate 5/second");
  const { keys, runs } = JSON.parse((await run("rl doctor --rate-per-service direct:2/second --json")).stdout);
  assert.equal(runs, 1);
  const used = keys.find(({ key }: { key: string }) => key === "direct:127.0.0.1");
  assert.deepEqual([used.windows, used.granted, used.refused], ["2/SECOND+5000/HOUR", 1, 0]);
  const service = keys.find(({ key }: { key: string }) => key === "ols:default");
  assert.equal(service.windows, "8/SECOND+300/MINUTE");
  const unlimited = JSON.parse((await run("rl doctor --json", { ONTOFETCH_RATELIMIT_DEFAULT: "none" })).stdout);
  assert.equal(unlimited.keys.find(({ key }: { key: string }) => key === "ols:default").windows, "unlimited");
  assert.match(
    (await run("rl doctor")).stdout,
    /^direct:127\.0\.0\.1 +8\/SECOND\+300\/MINUTE\+5000\/HOUR +2\/SECOND\+500\/HOUR.* 1 +0 +\d+ +\d+ +0$/m,
  );
});

test("limits of hosts in the user's file apply beside those of services, and its errors name their lines", async t => {
  const { folder, run } = await setUp(t);
  const limits = join(folder, "ratelimits.yaml");
  await writeFile(limits, "hosts:\n  127.0.0.1: { total: { rates: 1/SECOND } }\n");
  const env = { DOCSTOKG_RLIMITS_YAML: limits };
  await run("pull", env);
  assert.match(
    (await run("rl doctor", env)).stdout,
    /^direct:127\.0\.0\.1 +8\/SECOND\+300\/MINUTE\+5000\/HOUR .* 1\/SECOND +1 /m,
  );
  await writeFile(limits, "hosts:\n  127.0.0.1: { totl: { rates: 1/SECOND } }\n");
  const wrong = await run("pull", env);
  assert.equal(wrong.exitCode, 2);
  assert.match(wrong.stderr, /ratelimits\.yaml:2: hosts\.127\.0\.0\.1\.totl: unknown key; did you mean total\?/);
});

test("Ctrl-C ends a pull with exit code 130, says how to continue and leaves a valid store", async t => {
  const folder = temporaryFolder("ontofetch");
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const server = await serve(t, (_request, response) => {
    response.writeHead(200, { etag: '"one"', "content-length": 1_000_000 });
    response.write(file("2026-11-01"), () => resolve());
  });
  const url = `${server.origin}/x.obo`;
  await writeFile(
    join(folder, "sources.yaml"),
    `allow_private: true\nsources:\n  x: { resolver: direct, extras: { url: "${url}" } }\n`,
  );
  const program = JSON.stringify(join(import.meta.dirname, "../../src/cli/ontofetch.ts"));
  await writeFile(join(folder, "run.mjs"), `const { main } = await import(${program});\nawait main(process);\n`);
  const args = ["--disable-warning=ExperimentalWarning", "run.mjs", "pull"];
  const child = spawn(process.execPath, args, { cwd: folder });
  const { ended } = collectOutput(child);
  await asked;
  child.kill("SIGINT");
  const stderr = "Interrupted: what was received is kept. To continue, run the same command.\n";
  assert.deepEqual(await ended, { code: 130, signal: null, stdout: "", stderr });
  assert.deepEqual(await readdir(join(folder, "ontologies")), [".ontofetch"]);
});

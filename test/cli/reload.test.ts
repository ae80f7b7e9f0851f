import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, type TestContext, test } from "node:test";
import { pdf } from "../harvest/kit.ts";
import { PostgresServer, whyNoPostgres } from "../harvest/postgres-server.ts";
import { serve } from "../http/kit.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const root = resolve(import.meta.dirname, "../..");
const isWindows = process.platform === "win32" && "there is no SIGHUP on Windows";

/** A server that holds the first request for its file until the test calls `answer`. */
async function heldServer(t: TestContext, type: string, body: string | Buffer) {
  const arrived = Promise.withResolvers<ServerResponse>();
  let isHeld = true;
  const server = await serve(t, (request, response) => {
    if (request.url !== "/file") return void response.writeHead(404).end();
    response.setHeader("content-type", type);
    if (isHeld) arrived.resolve(response);
    else response.end(body);
  });
  const answer = async () => {
    isHeld = false;
    (await arrived.promise).end(body);
  };
  return { origin: server.origin, arrived: arrived.promise, answer };
}

function start(t: TestContext, program: string, argv: readonly string[], env: Record<string, string>) {
  const { PATH = "" } = process.env;
  const child = spawn(process.execPath, [join(root, "bin", `${program}.cjs`), ...argv], {
    env: { PATH, ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  t.after(() => child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stderr })[Symbol.asyncIterator]();
  /** Reads stderr up to a line that matches; returns all lines read. */
  const readTo = async (wanted: RegExp) => {
    const read: string[] = [];
    for (;;) {
      const { value, done } = await lines.next();
      assert.ok(!done, `the program has ended without ${wanted}:\n${read.join("\n")}`);
      read.push(value);
      if (wanted.test(value)) return read;
    }
  };
  return { child, readTo };
}

test("docstokg run reloads its policy at SIGHUP, prints what changed, and finishes its work", {
  skip: isWindows,
}, async t => {
  const folder = temporaryFolder("harvest");
  const limits = join(folder, "limits.yaml");
  const write = (text: string) => writeFileSync(limits, text);
  write("global: { max_inflight: 9 }\n");
  const { origin, arrived, answer } = await heldServer(t, "application/pdf", pdf("a"));
  const argv = ["run", `${origin}/file`, "--out", join(folder, "papers"), "--allow-private", "--quiet"];
  const { child, readTo } = start(t, "docstokg", argv, { DOCSTOKG_RLIMITS_YAML: limits });
  const exited = once(child, "exit");
  await Promise.race([arrived, exited.then(() => readTo(/^a line that is never printed$/))]);

  write("global: { max_inflight: 5 }\n");
  child.kill("SIGHUP");
  await readTo(/^policy reloaded \(SIGHUP\): 1 value changed$/);
  assert.deepEqual(await readTo(/max_inflight/), [`  ratelimits.global.max_inflight: 9 -> 5 (${limits}:1)`]);

  write("global: { max_inflight: five }\n");
  child.kill("SIGHUP");
  await readTo(/^policy not reloaded \(SIGHUP\); the old policy stays in force:$/);
  await readTo(/limits\.yaml:1: global\.max_inflight: expected number, found "five"/);

  write(`backend: { kind: sqlite, dsn: ${join(folder, "x.db")} }\n`);
  child.kill("SIGHUP");
  await readTo(/^policy not reloaded \(SIGHUP\); the old policy stays in force:$/);
  await readTo(/backend: changed from memory to sqlite:.*, but a running hub cannot change its store/);

  await answer();
  assert.deepEqual(await exited, [0, null]);
});

test("docstokg run reloads its policy with --watch-policy when the file is replaced", async t => {
  const folder = temporaryFolder("harvest");
  const limits = join(folder, "limits.yaml");
  writeFileSync(limits, "global: { max_inflight: 9 }\n");
  const { origin, arrived, answer } = await heldServer(t, "application/pdf", pdf("a"));
  const argv = ["run", `${origin}/file`, "--out", join(folder, "papers"), "--allow-private", "--quiet"];
  const { child, readTo } = start(t, "docstokg", [...argv, "--watch-policy"], { DOCSTOKG_RLIMITS_YAML: limits });
  const exited = once(child, "exit");
  await Promise.race([arrived, exited.then(() => readTo(/^a line that is never printed$/))]);
  writeFileSync(limits, "global: { max_inflight: 5 }\n");
  await readTo(/^policy reloaded \(--watch-policy\): 1 value changed$/);
  await answer();
  assert.deepEqual(await exited, [0, null]);
});

test("ontofetch pull reloads the limits of sources.yaml at SIGHUP, and finishes its work", {
  skip: isWindows,
}, async t => {
  const folder = temporaryFolder("harvest");
  const file = join(folder, "sources.yaml");
  const { origin, arrived, answer } = await heldServer(
    t,
    "text/plain",
    "format-version: 1.2\ndata-version: 1\n\n[Term]\nid: A:1\nname: a\n",
  );
  const write = (rate: string, more = "") =>
    writeFileSync(
      file,
      `allow_private: true\nratelimit: { default: ${rate}${more} }\nsources:\n` +
        `  a: { resolver: direct, extras: { url: "${origin}/file" }, target_formats: [obo] }\n`,
    );
  write("8/second");
  const { child, readTo } = start(t, "ontofetch", ["pull", "--sources", file], {});
  const exited = once(child, "exit");
  await Promise.race([arrived, exited.then(() => readTo(/^a line that is never printed$/))]);
  write("4/second");
  child.kill("SIGHUP");
  await readTo(/^policy reloaded \(SIGHUP\): \d+ values changed$/);
  await readTo(
    /^ {2}ratelimits\.services\.direct\.metadata\.rates: 8\/SECOND\+300\/MINUTE -> 4\/SECOND \(.*sources\.yaml\)$/,
  );
  write("4/fortnight");
  child.kill("SIGHUP");
  await readTo(/^policy not reloaded \(SIGHUP\); the old policy stays in force:$/);
  await readTo(/sources\.yaml:2: ratelimit\.default: "4\/fortnight" is not a rate: unknown time unit "fortnight"/);
  write("4/second", `, shared_dir: ${join(folder, "shared")}`);
  child.kill("SIGHUP");
  await readTo(/ratelimit\.shared_dir: changed from none to .*shared, but a running pull cannot change its store/);
  await answer();
  assert.deepEqual(await exited, [0, null]);
});

describe("docstokg worker", { skip: isWindows || whyNoPostgres() }, () => {
  let postgres: PostgresServer;
  before(async () => {
    postgres = await PostgresServer.start();
  });
  after(() => postgres?.stop());

  test("reloads its policy at SIGHUP, keeps the old one if the file is invalid or has another store, and finishes its work", async t => {
    const folder = temporaryFolder("harvest");
    const limits = join(folder, "limits.yaml");
    const write = (text: string) => writeFileSync(limits, text);
    write("global: { max_inflight: 9 }\n");
    const { origin, arrived, answer } = await heldServer(t, "application/pdf", pdf("a"));
    const shared = ["--manifest", postgres.url(), "--out", join(folder, "papers"), "--no-telemetry", "--quiet"];
    const env = { DOCSTOKG_RLIMITS_YAML: limits };
    const run = start(t, "docstokg", ["run", `${origin}/file`, "--allow-private", "--enqueue-only", ...shared], env);
    assert.deepEqual(await once(run.child, "exit"), [0, null]);

    const { child, readTo } = start(t, "docstokg", ["worker", "--sole-worker", "--allow-private", ...shared], env);
    const exited = once(child, "exit");
    await Promise.race([arrived, exited.then(() => readTo(/^a line that is never printed$/))]);
    write("global: { max_inflight: 5 }\n");
    child.kill("SIGHUP");
    await readTo(/^policy reloaded \(SIGHUP\): 1 value changed$/);
    await readTo(/^ {2}ratelimits\.global\.max_inflight: 9 -> 5 \(policy\.ratelimits\)$/);
    write("global: { max_inflght: 4 }\n");
    child.kill("SIGHUP");
    await readTo(/^policy not reloaded \(SIGHUP\); the old policy stays in force:$/);
    await readTo(/limits\.yaml:1: global\.max_inflght: unknown key; did you mean max_inflight\?/);
    write(`backend: { kind: sqlite, dsn: ${join(folder, "x.db")} }\n`);
    child.kill("SIGHUP");
    await readTo(/backend: changed from memory to sqlite:.*, but a running hub cannot change its store/);
    await answer();
    assert.deepEqual(await exited, [0, null]);
  });
});

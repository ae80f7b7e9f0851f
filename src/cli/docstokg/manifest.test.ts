import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, test } from "node:test";
import { runCli, temporaryFolder } from "../../../test/cli/kit.ts";
import { PostgresServer, whyNoPostgres } from "../../../test/harvest/postgres-server.ts";
import { workOf } from "../../harvest/identifiers/identifiers.ts";
import { openManifest } from "../../harvest/manifest/manifest.ts";
import { systemTime } from "../../time/system-time.ts";

test("a password on the command line is refused and not repeated", async () => {
  const { folder } = await temporaryFolder();
  const url = "postgres://me:hunter2@127.0.0.1:1/db";
  for (const args of [
    ["status", "--manifest", url],
    ["run", "10.1/a", "--out", folder, "--manifest", url],
    ["manifest", "copy", url, join(folder, "m.sqlite")],
    ["status", "--manifest", "postgres://me@127.0.0.1:1/db?password=hunter2"],
  ]) {
    const { exitCode, stderr } = await runCli(args);
    assert.equal(exitCode, 2);
    assert.match(stderr, /other users can read a password on the command line; set PGPASSWORD or PGPASSFILE/);
    assert.doesNotMatch(stderr, /hunter2/);
  }
  const fromEnvironment = await runCli(["status"], { env: { DOCSTOKG_MANIFEST: url } });
  assert.match(fromEnvironment.stderr, /^docstokg: cannot reach the manifest postgres:\/\/127\.0\.0\.1:1\/db: /);
  assert.doesNotMatch(fromEnvironment.stderr, /hunter2/);
});

test("a manifest whose server cannot be reached is no usage error: the exit code is 1", async () => {
  const { folder } = await temporaryFolder();
  const url = "postgres://me@127.0.0.1:1/db";
  for (const args of [
    ["status", "--manifest", url],
    ["export", "--manifest", url],
    ["manifest", "copy", url, join(folder, "m.sqlite")],
    ["run", "10.1/a", "--out", folder, "--manifest", url, "--quiet"],
    ["worker", "--stay", "--manifest", url],
  ]) {
    const { exitCode, stderr } = await runCli(args);
    assert.equal(exitCode, 1, args.join(" "));
    assert.match(stderr, /cannot reach the manifest postgres:\/\/127\.0\.0\.1:1\/db: connect ECONNREFUSED/);
  }
});

test("manifest copy of a missing file names its argument, and no flag that the command does not have", async () => {
  const { folder } = await temporaryFolder();
  const from = join(folder, "none.sqlite");
  const { exitCode, stderr } = await runCli(["manifest", "copy", from, join(folder, "to.sqlite")]);
  assert.deepEqual([exitCode, stderr], [2, `docstokg: <from>: manifest not found: ${from}\n`]);
});

test("manifest copy neither changes nor locks its source, and refuses a source that a run uses", async () => {
  const { folder } = await temporaryFolder();
  const from = join(folder, "source", "manifest.sqlite");
  const manifest = await openManifest(from, systemTime);
  await manifest.beginRun("run");
  await manifest.close();
  const before = readFileSync(from);
  const copied = await runCli(["manifest", "copy", from, join(folder, "to.sqlite")]);
  assert.equal(copied.exitCode, 0, copied.stderr);
  assert.deepEqual(readFileSync(from), before);
  assert.equal(existsSync(`${from}.lock`), false);
  const run = await openManifest(from, systemTime);
  const lock = await run.tryLock();
  const refused = await runCli(["manifest", "copy", from, join(folder, "other.sqlite")]);
  assert.deepEqual(
    [refused.exitCode, refused.stderr],
    [2, `docstokg: manifest copy: a run uses the manifest ${from}; wait until the run ends\n`],
  );
  lock?.release();
  await run.close();
});

test("manifest copy names the source if the source cannot be read", async () => {
  const { folder } = await temporaryFolder();
  const [from, to] = [join(folder, "from.sqlite"), join(folder, "to.sqlite")];
  await (await openManifest(from, systemTime)).close();
  damage(from, "attempts");
  const { exitCode, stderr } = await runCli(["manifest", "copy", from, to]);
  assert.equal(exitCode, 1);
  assert.match(stderr, /cannot read the manifest .*from\.sqlite: database disk image is malformed/);
  assert.doesNotMatch(stderr, /to\.sqlite/);
});

/** Fills the first page of a table with bytes that SQLite cannot read. */
function damage(path: string, table: string): void {
  const database = new DatabaseSync(path);
  const { page, size } = database
    .prepare("SELECT rootpage AS page, page_size AS size FROM sqlite_schema, pragma_page_size WHERE name = ?")
    .get(table) as { readonly page: number; readonly size: number };
  database.close();
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.fill(0xff, (page - 1) * size, page * size));
}

/** The commands that use the manifest of a folder. */
const COMMANDS = [
  ["status"],
  ["status", "--export", "-"],
  ["export"],
  ["verify"],
  ["verify", "--repair"],
  ["run", "10.1000/a", "--dry-run", "--resolvers", "landing_page"],
  ["run", "10.1000/a", "-q", "--no-telemetry", "--resolvers", "landing_page"],
  ["retry", "-q", "--no-telemetry", "--resolvers", "landing_page"],
];

test("a manifest that lacks a table is a message with the file, the table and what to do, for every command", async () => {
  const { folder } = await temporaryFolder();
  const path = join(folder, "manifest.sqlite");
  await (await openManifest(path, systemTime)).close();
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  database.exec("DROP TABLE work_files");
  database.close();
  const why = `cannot use ${path} as manifest: the table work_files is missing`;
  for (const command of COMMANDS) {
    const { exitCode, stderr } = await runCli([...command, "--out", folder]);
    assert.equal(exitCode, 2, `${command.join(" ")}: ${stderr}`);
    assert.ok(
      stderr.startsWith(`docstokg: --manifest: ${why}; restore the file from a copy, or choose another`),
      stderr,
    );
  }
  const copied = await runCli(["manifest", "copy", path, join(folder, "copy.sqlite")]);
  assert.equal(copied.stderr, `docstokg: <from>: ${why}; restore the file from a copy\n`);
});

test("a damaged manifest cannot be read, by any command", async () => {
  const { folder } = await temporaryFolder();
  const path = join(folder, "manifest.sqlite");
  await (await openManifest(path, systemTime)).close();
  for (const table of ["works", "attempts"]) damage(path, table);
  for (const command of COMMANDS) {
    const { exitCode, stderr } = await runCli([...command, "--out", folder]);
    assert.equal(exitCode, 1, `${command.join(" ")}: ${stderr}`);
    assert.equal(stderr, `docstokg: cannot read the manifest ${path}: database disk image is malformed\n`);
  }
});

test("a record that another program has changed is an error with the name of the manifest, and no stack trace", async () => {
  const { folder } = await temporaryFolder();
  const path = join(folder, "manifest.sqlite");
  const manifest = await openManifest(path, systemTime);
  const works = [workOf({ doi: "10.1000/a" })];
  await manifest.works.add(await manifest.beginRun("run"), works, { isPresent: () => true });
  await manifest.close();
  const db = new DatabaseSync(path);
  db.exec("UPDATE works SET ids = '{doi'");
  db.close();
  for (const command of [["export"], ["status", "--export", "-"], ["retry", "--quiet"]]) {
    const { exitCode, stderr } = await runCli([...command, "--out", folder]);
    assert.equal(exitCode, 1);
    assert.ok(stderr.endsWith(`cannot read the manifest ${path}: a record of a work is not valid JSON\n`), stderr);
  }
});

test("an invalid URL of a manifest is reported under the name of its argument or variable", async () => {
  const problem = "the address of the PostgreSQL manifest names no database; expected";
  const copied = await runCli(["manifest", "copy", "postgres://a@b.example", "x.sqlite"]);
  assert.ok(copied.stderr.startsWith(`docstokg: <from>: ${problem}`), copied.stderr);
  const status = await runCli(["status"], { env: { DOCSTOKG_MANIFEST: "postgres://a@b.example" } });
  assert.ok(status.stderr.startsWith(`docstokg: DOCSTOKG_MANIFEST: ${problem}`), status.stderr);
  const flag = await runCli(["status", "--manifest", "postgres://a@b.example"]);
  assert.ok(flag.stderr.startsWith(`docstokg: --manifest: ${problem}`), flag.stderr);
});

describe("commands on a PostgreSQL manifest", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start();
  });
  after(() => server?.stop());

  test("status, export, verify, retry and copy work as on a file", async () => {
    const { folder } = await temporaryFolder();
    const url = server.url({ schema: "harvest" });
    const missing = await runCli(["status", "--manifest", url]);
    assert.deepEqual([missing.exitCode, missing.stdout], [2, ""]);
    assert.match(missing.stderr, /manifest not found: postgres:\/\/127.*schema=harvest; docstokg run creates it/);
    const manifest = await openManifest(url, systemTime);
    const run = await manifest.beginRun("run", "{}");
    const isPresent = () => true;
    await manifest.works.add(run, [workOf({ doi: "10.1/a" }, { title: "A" }), workOf({ doi: "10.1/b" })], {
      isPresent,
    });
    const [a, b] = await manifest.queue.take(run, "", systemTime.wallMs(), 2);
    writeFileSync(join(folder, "a.pdf"), "a");
    const sha256 = createHash("sha256").update("a").digest("hex");
    const origin = { urlHash: "u", url: "https://x.example/a.pdf", resolver: "openalex" };
    const file = { sha256, path: "a.pdf", bytes: 1, mediaType: "application/pdf", ...origin };
    await manifest.finish(run, a?.work.id ?? 0, "ok", file);
    await manifest.fail(b?.work.id ?? 0, "no-copy", "nothing found");
    await manifest.endRun(run, "ended");
    await manifest.close();
    const env = { DOCSTOKG_MANIFEST: url };

    const status = await runCli(["status"], { env });
    assert.match(status.stdout, /^2 works: 1 done, 1 failed, 0 unfinished\n1 file, 1 B\nlast run: .*, ended \(run\)\n/);
    const json = JSON.parse((await runCli(["status", "--json"], { env })).stdout);
    assert.equal(json.manifest, `postgres://127.0.0.1:${server.port}/postgres?schema=harvest`);
    const exported = await runCli(["export", "--format", "jsonl"], { env });
    assert.equal(exported.stdout.trim().split("\n").length, 2);
    assert.equal((await runCli(["status", "--export", "-"], { env })).stdout.trim().split("\n").length, 2);
    assert.equal((await runCli(["verify", "--out", folder], { env })).stdout, "1 file, 1 intact\n");

    const copied = await runCli(["manifest", "copy", url, join(folder, "copy.sqlite")]);
    assert.equal(copied.exitCode, 0, copied.stderr);
    assert.match(copied.stdout, /^Copied 2 works, 1 file, 0 attempts from postgres:/);
    const again = await runCli(["manifest", "copy", url, join(folder, "copy.sqlite")]);
    assert.deepEqual([again.exitCode, again.stdout], [2, ""]);
    assert.match(again.stderr, /copy\.sqlite already has works or runs; copy to an empty manifest/);
    const copy = await runCli(["status", "--manifest", join(folder, "copy.sqlite")]);
    assert.equal(copy.stdout, status.stdout);

    rmSync(join(folder, "a.pdf"));
    const repaired = await runCli(["verify", "--out", folder, "--repair"], { env });
    assert.match(repaired.stdout, /1 work pending again/);
    const retry = ["retry", "--out", folder, "--resolvers", "core", "--no-telemetry", "-q", "--json"];
    const retried = await runCli(retry, { env });
    assert.equal(retried.exitCode, 1, retried.stderr);
    const summary = JSON.parse(retried.stdout);
    assert.deepEqual(summary.reasons, [{ state: "failed", reason: "no-resolver", works: 1 }]);
    assert.equal(summary.manifest, json.manifest);
  });
});

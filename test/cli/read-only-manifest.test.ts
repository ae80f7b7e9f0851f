import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { promisify } from "node:util";
import { workOf } from "../../src/harvest/identifiers/identifiers.ts";
import { openManifest } from "../../src/harvest/manifest/manifest.ts";
import { openRunTelemetry } from "../../src/telemetry/run-telemetry.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { temporaryFolder } from "./kit.ts";

const run = promisify(execFile);
const asUser = process.getuid?.() === 0 ? false : "only root can run a program as another user";

const SOURCES = JSON.stringify(new URL("../../src/", import.meta.url).href);

/** A folder that another user may read and not write, with a manifest of one work and telemetry. */
async function readableFolder() {
  const { folder } = await temporaryFolder();
  const path = join(folder, "manifest.sqlite");
  const manifest = await openManifest(path, systemTime);
  const id = await manifest.beginRun("run");
  await manifest.works.add(id, [workOf({ doi: "10.1000/a" })], { isPresent: () => true });
  await writeFile(join(folder, "a.pdf"), "a");
  const sha256 = createHash("sha256").update("a").digest("hex");
  const origin = { urlHash: "a", url: "https://x.example/a.pdf", resolver: "openalex" };
  await manifest.finish(id, 1, "ok", { sha256, path: "a.pdf", bytes: 1, mediaType: "application/pdf", ...origin });
  const telemetry = await openRunTelemetry(folder, { program: "test", format: "sqlite", runId: "one" });
  await telemetry.close();
  await chmod(dirname(folder), 0o755);
  await chmod(folder, 0o755);
  for (const name of await readdir(folder)) await chmod(join(folder, name), 0o644);
  return { folder, manifest, id };
}

/** Runs commands as a user who may only read the folder. `FOLDER` stands for the folder. */
async function asReader(folder: string, commands: readonly (readonly string[])[]) {
  const other = await readableFolder();
  await other.manifest.close();
  const script = `
    const { docstokg } = await import(${SOURCES} + "cli/docstokg.ts");
    const { runProgram } = await import(${SOURCES} + "cli/program.ts");
    const runAll = async folder => {
      const results = [];
      for (const command of ${JSON.stringify(commands)}) {
        const result = { stdout: "", stderr: "" };
        const [stdout, stderr] = ["stdout", "stderr"].map(name => ({ write: text => (result[name] += text) }));
        const argv = command.map(part => part.replace("FOLDER", folder));
        // The dashboard is interrupted as soon as it is served.
        const onInterrupt = command[0] === "dashboard" ? listener => (listener(), () => undefined) : undefined;
        const exitCode = await runProgram(docstokg, { argv, env: {}, stdout, stderr, onInterrupt });
        results.push({ ...result, exitCode });
      }
      return results;
    };
    // The other user may not be able to read the sources, which are loaded here.
    await runAll(${JSON.stringify(other.folder)});
    process.setgid(65534);
    process.setuid(65534);
    console.log(JSON.stringify(await runAll(${JSON.stringify(folder)})));`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", script]);
  return JSON.parse(stdout) as readonly {
    readonly exitCode: number;
    readonly stdout: string;
    readonly stderr: string;
  }[];
}

const COMMANDS = [
  ["status", "--json", "--out", "FOLDER"],
  ["verify", "--json", "--out", "FOLDER"],
  ["report", "--json", "FOLDER"],
  ["export", "--format", "jsonl", "--out", "FOLDER"],
];

test("a user who may only read the folder of a run sees its works", { skip: asUser }, async () => {
  const { folder, manifest, id } = await readableFolder();
  await manifest.endRun(id, "ended");
  await manifest.close();
  const before = (await readdir(folder)).sort();
  const results = await asReader(folder, COMMANDS);
  assert.deepEqual(
    results.map(({ exitCode, stderr }) => [exitCode, stderr]),
    COMMANDS.map(() => [0, ""]),
  );
  const [status, verify, report, exported] = results.map(({ stdout }) => JSON.parse(stdout));
  assert.deepEqual([status.works.done, verify.intact, report.runId, exported.key], [1, 1, "one", "doi:10.1000/a"]);
  assert.deepEqual((await readdir(folder)).sort(), before);
});

test("a manifest that only its owner may read is refused with that reason", { skip: asUser }, async () => {
  const { folder, manifest } = await readableFolder();
  await manifest.close();
  const file = join(folder, "manifest.sqlite");
  await chmod(file, 0o600);
  const [status] = await asReader(folder, [["status", "--out", "FOLDER"]]);
  const reason = "no permission to read the file; its owner can change that with chmod";
  const stderr = `docstokg: --manifest: cannot use ${file} as manifest: ${reason}\n`;
  assert.deepEqual(status, { exitCode: 2, stdout: "", stderr });
});

test("a user who may only read the folder of a run can copy its manifest", { skip: asUser }, async () => {
  const { folder, manifest, id } = await readableFolder();
  await manifest.endRun(id, "ended");
  await manifest.close();
  const before = (await readdir(folder)).sort();
  const target = `${folder}-copy`;
  await mkdir(target);
  await chmod(target, 0o777);
  const to = join("FOLDER-copy", "to.sqlite");
  const results = await asReader(folder, [
    ["manifest", "copy", "--json", join("FOLDER", "manifest.sqlite"), to],
    ["status", "--json", "--manifest", to],
  ]);
  assert.deepEqual(
    results.map(({ exitCode, stderr }) => [exitCode, stderr]),
    [
      [0, ""],
      [0, ""],
    ],
  );
  assert.equal(JSON.parse(results[1]?.stdout ?? "").works.done, 1);
  assert.deepEqual((await readdir(folder)).sort(), before);
});

test("a user who may only read the folder of a run can open its dashboard", { skip: asUser }, async () => {
  const { folder, manifest, id } = await readableFolder();
  await manifest.endRun(id, "ended");
  await manifest.close();
  const [dashboard] = await asReader(folder, [["dashboard", "--run", "FOLDER"]]);
  assert.deepEqual([dashboard?.exitCode, dashboard?.stderr], [130, ""]);
  assert.match(dashboard?.stdout ?? "", /^Dashboard: http:\/\/127\.0\.0\.1:\d+\//);
});

test("a user who may only read the folder sees whether a run uses the manifest", { skip: asUser }, async () => {
  const { folder, manifest } = await readableFolder();
  const stateOf = async () => {
    for (const name of await readdir(folder)) await chmod(join(folder, name), 0o644);
    const [status] = await asReader(folder, [["status", "--json", "--out", "FOLDER"]]);
    assert.equal(status?.stderr, "");
    return JSON.parse(status?.stdout ?? "").runs[0].state;
  };
  assert.equal(await stateOf(), "stopped");
  const lock = await manifest.tryLock();
  assert.equal(await stateOf(), "running");
  lock?.release();
  await manifest.close();
});

test("a run or retry whose folder cannot be written names the flag of the folder", { skip: asUser }, async () => {
  const { folder, manifest } = await readableFolder();
  await manifest.close();
  await mkdir(`${folder}-out`);
  await chmod(`${folder}-out`, 0o777);
  const work = ["http://127.0.0.1:9/a.pdf", "-q", "--resolvers", "landing_page"];
  const results = await asReader(folder, [
    ["run", ...work, "--out", "FOLDER"],
    ["run", ...work, "--out", "FOLDER-out", "--manifest", join("FOLDER", "manifest.sqlite")],
    ["retry", "-q", "--out", "FOLDER"],
  ]);
  const problem = `no permission to write in ${folder} (EACCES)\n`;
  assert.deepEqual(
    results.map(({ exitCode, stderr }) => [exitCode, stderr]),
    ["--out", "--manifest", "--out"].map(flag => [2, `docstokg: ${flag}: ${problem}`]),
  );
});

test("a user who may only read the folder of a run sees what is written after its first read", {
  skip: asUser,
}, async t => {
  const { folder, manifest } = await readableFolder();
  await manifest.close();
  const script = `
    const { once } = await import("node:events");
    const { readManifest } = await import(${SOURCES} + "harvest/manifest/manifest.ts");
    const { openTelemetryFile } = await import(${SOURCES} + "telemetry/reading/telemetry-file.ts");
    const { systemTime } = await import(${SOURCES} + "time/system-time.ts");
    process.setgid(65534);
    process.setuid(65534);
    const folder = ${JSON.stringify(folder)};
    const manifest = await readManifest(folder + "/manifest.sqlite", systemTime);
    const telemetry = await openTelemetryFile(folder);
    const print = async () => {
      const { works } = await manifest.reports.report();
      const pages = [];
      for await (const { table, rows } of manifest.tables.read()) if (table === "works") pages.push(rows.length);
      const runs = await telemetry.runs();
      const programs = [];
      for (const { runId } of runs) for await (const event of telemetry.events(runId)) programs.push(event.program);
      console.log(JSON.stringify([works.total, pages, programs.filter(program => program !== undefined)]));
    };
    await print();
    await once(process.stdin, "data");
    await print();
    process.exit();`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => child.kill());
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  assert.deepEqual(JSON.parse((await lines.next()).value), [1, [1], ["test"]]);
  const later = await openManifest(join(folder, "manifest.sqlite"), systemTime);
  const id = await later.beginRun("run");
  await later.works.add(id, [workOf({ doi: "10.1000/b" })], { isPresent: () => true });
  const telemetry = await openRunTelemetry(folder, { program: "later", format: "sqlite", runId: "two" });
  await telemetry.telemetry.flush();
  for (const name of await readdir(folder)) await chmod(join(folder, name), 0o644);
  child.stdin.write("\n");
  assert.deepEqual(JSON.parse((await lines.next()).value), [2, [2], ["test", "later"]]);
  await telemetry.close();
  await later.close();
});

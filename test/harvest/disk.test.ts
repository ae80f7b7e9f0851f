import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { docstokg } from "../../src/cli/docstokg.ts";
import { runProgram } from "../../src/cli/program.ts";
import { openManifest } from "../../src/harvest/manifest/manifest.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { serve } from "../http/kit.ts";
import { folderFor, pdf } from "./kit.ts";

async function stderrOf(args: readonly string[]): Promise<{ readonly code: number; readonly stderr: string }> {
  let stderr = "";
  const silent = { write: () => undefined };
  const io = { argv: args, env: {}, stdout: silent, stderr: { write: (text: string) => (stderr += text) } };
  return { code: await runProgram(docstokg, io), stderr };
}

async function publisher(t: TestContext): Promise<string> {
  const server = await serve(t, (request, response) => {
    if (request.url === "/robots.txt") response.end("");
    else response.end(pdf(request.url ?? ""));
  });
  return server.origin;
}

test("an invalid output folder is a one-line error before the first request", async t => {
  const folder = folderFor(t);
  const file = join(folder, "papers");
  writeFileSync(file, "not a folder");
  for (const args of [
    ["--out", file],
    ["--out", join(file, "deeper")],
    ["--out", file, "--manifest", join(folder, "m.sqlite")],
    ["--out", join(folder, "new"), "--manifest", folder],
  ]) {
    const { code, stderr } = await stderrOf(["run", "10.5555/a", ...args, "--no-telemetry", "--quiet"]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /^docstokg: --(?:manifest|out): .*$/m);
    assert.doesNotMatch(stderr, /\n\s+at /);
  }
});

test("an export that cannot be written is a one-line error", async t => {
  const folder = folderFor(t);
  (await openManifest(join(folder, "manifest.sqlite"), systemTime)).close();
  const { code, stderr } = await stderrOf(["status", "--out", folder, "--export", join(folder, "nowhere", "x.jsonl")]);
  assert.equal(code, 1);
  assert.match(stderr, /^docstokg: ENOENT/);
});

test("a run continues when its output is closed", async t => {
  const origin = await publisher(t);
  const out = join(folderFor(t), "papers");
  mkdirSync(out);
  const works = ["a", "b", "c"].map(name => `${origin}/${name}.pdf`);
  const flags = ["--out", out, "--allow-private", "--no-telemetry", "--resolvers", "landing_page"];
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, "run-process.ts"), "run", "nonsense!", ...works, ...flags],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  child.stderr.destroy();
  child.stdout.destroy();
  const [code] = await once(child, "exit");
  assert.equal(code, 1, "one line was not understood");
  assert.equal(readdirSync(out).filter(name => name.endsWith(".pdf")).length, 3);
});

test("the manifest does not contain the password of a shared store", async t => {
  const folder = folderFor(t);
  const dsn = "sqlite:hunter2.db";
  const limits = ["--rate-backend", "sqlite", "--rate-dsn", join(folder, dsn)];
  const { code, stderr } = await stderrOf([
    "run",
    "nonsense!",
    "--out",
    folder,
    ...limits,
    "--no-telemetry",
    "--quiet",
  ]);
  assert.equal(code, 1, stderr);
  const manifest = await openManifest(join(folder, "manifest.sqlite"), systemTime);
  try {
    const commands = manifest.db.prepare("SELECT command FROM runs").all();
    assert.equal(commands.length, 1);
    assert.doesNotMatch(JSON.stringify(commands), /hunter2/);
  } finally {
    manifest.close();
  }
});

import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { compactPolicy } from "../../src/cli/docstokg/policy-table.ts";
import { recordedCommand } from "../../src/cli/docstokg/recorded-command.ts";
import { docstokg } from "../../src/cli/docstokg.ts";
import { ontofetch } from "../../src/cli/ontofetch.ts";
import { type CliCommand, type Program, runProgram } from "../../src/cli/program.ts";
import { loadPolicy } from "../../src/policy/load.ts";
import { runCli, temporaryFolder } from "./kit.ts";

/** Every command line that can be asked for help. */
function paths({ name, commands = [] }: CliCommand): readonly (readonly string[])[] {
  return [[name], ...commands.flatMap(paths).map(path => [name, ...path])];
}

async function said(program: Program, argv: readonly string[]) {
  let stdout = "";
  let stderr = "";
  const exitCode = await runProgram(program, {
    argv,
    env: {},
    stdout: { write: text => (stdout += text) },
    stderr: { write: text => (stderr += text) },
  });
  return { exitCode, stdout, stderr };
}

test("the help of every command fits eighty columns, and both ways to ask for it say the same", async () => {
  for (const program of [docstokg, ontofetch]) {
    for (const path of program.commands.flatMap(paths)) {
      const asked = await said(program, [...path, "--help"]);
      assert.equal(asked.exitCode, 0);
      for (const line of asked.stdout.split("\n")) assert.ok(line.length <= 80, `${path.join(" ")}: ${line}`);
      assert.deepEqual(await said(program, ["help", ...path]), asked);
    }
  }
});

test("help for something below a command that does not exist names all of it", async () => {
  const { exitCode, stderr } = await runCli(["help", "policy", "shwo"]);
  assert.equal(exitCode, 2);
  assert.equal(
    stderr,
    "docstokg: there is no command 'policy shwo'\nRun \"docstokg policy --help\" to see what there is.\n",
  );
});

test("a folder that is a file, and a mapping that is none, are sentences and not stack traces", async t => {
  const { folder } = await temporaryFolder(t);
  const file = join(folder, "file");
  await writeFile(file, "");
  const run = ["run", "10.1234/a", "-q"];
  assert.deepEqual(await runCli([...run, "--out", file]), {
    exitCode: 2,
    stdout: "",
    stderr: `docstokg: --out: ${file} is no folder\n`,
  });
  const below = await runCli([...run, "--out", join(folder, "papers"), "--manifest", join(file, "m.sqlite")]);
  assert.deepEqual([below.exitCode, below.stderr], [2, `docstokg: --manifest: ${file} is no folder\n`]);

  const out = join(folder, "untouched");
  const mapped = await runCli([...run, "--out", out, "--connect-to", "foo", "--metrics-port", "99999"]);
  assert.equal(mapped.exitCode, 2);
  assert.match(mapped.stderr, /--connect-to: "foo" is not a mapping: .* such as "example\.org:443:127\.0\.0\.1:8443"/);
  assert.match(mapped.stderr, /--metrics-port: "99999" is no whole number from 0 to 65535/);
  assert.equal(existsSync(out), false);
});

test("flags that would say nothing, and numbers that are none, are mistakes", async t => {
  const { folder } = await temporaryFolder(t);
  const out = join(folder, "papers");
  const idle = ["--from-year", "2020", "--open-only", "--max", "5", "--column", "doi"];
  const { exitCode, stderr } = await runCli(["run", "10.1234/a", "--out", out, ...idle]);
  assert.equal(exitCode, 2);
  for (const flag of ["--from-year", "--open-only", "--max"])
    assert.match(stderr, new RegExp(`${flag}: says nothing without --query`));
  assert.match(stderr, /--column: says nothing without --input/);
  const year = await runCli(["run", "--query", "x", "--from-year", "last", "--out", out]);
  assert.deepEqual([year.exitCode, year.stderr], [2, 'docstokg: --from-year: "last" is no whole number\n']);
  assert.equal(existsSync(out), false);
});

test("an empty list, and a manifest with nothing left to do, say so", async t => {
  const { folder } = await temporaryFolder(t);
  const list = join(folder, "list.txt");
  const out = join(folder, "papers");
  await writeFile(list, "# nothing yet\n");
  const flags = ["--out", out, "-q", "--resolvers", "landing_page", "--json"];
  const ran = await runCli(["run", "--input", list, ...flags]);
  assert.deepEqual(
    [ran.exitCode, ran.stderr, JSON.parse(ran.stdout).works.total],
    [0, "The list names no works.\n", 0],
  );
  const retried = await runCli(["retry", ...flags]);
  assert.equal(retried.stderr, "Nothing is unfinished; --failed tries again what failed.\n");
  const failed = await runCli(["retry", "--reason", "network", ...flags]);
  assert.equal(failed.stderr, "Nothing is unfinished, and nothing has failed as network.\n");
});

test("a work that failed before is told from one that was tried", async t => {
  const { folder } = await temporaryFolder(t);
  const run = ["run", "http://127.0.0.1:9/a.pdf", "--out", join(folder, "papers"), "-q", "--resolvers", "landing_page"];
  assert.match((await runCli(run)).stdout, /^0 of 1 work done, 1 failed, in /);
  assert.match((await runCli(run)).stdout, /^0 of 1 work done, 1 failed, 1 of them before, and not tried again, in /);
});

test("a report on what is not there names it", async () => {
  const { exitCode, stderr } = await runCli(["report", "no-such-folder"]);
  assert.equal(exitCode, 2);
  assert.match(stderr, /^docstokg: no-such-folder: there is no such folder or file/);
});

test("a file that is no YAML at all is a handful of problems, not hundreds", async t => {
  const { folder } = await temporaryFolder(t);
  const file = join(folder, "readme.yaml");
  await writeFile(file, "# A title\n\n**text**: [a](b), `c`: d\n".repeat(40));
  const { exitCode, stdout, stderr } = await runCli(["policy", "check", file]);
  assert.equal(exitCode, 2);
  const lines = (stdout + stderr).split("\n").filter(line => line.startsWith(`${file}:`));
  assert.ok(lines.length <= 8, lines.join("\n"));
  assert.match(stdout + stderr, /and \d+ more syntax errors; is this file YAML\?/);
});

test("the policy at the start of a run is whole in a log, and a line where a terminal could not show it", async () => {
  const policy = await loadPolicy({ env: {} });
  assert.match(compactPolicy(policy), /^backend memory, .*\n\nhost +metadata[\s\S]*\ngroup arxiv +1\/3SECOND/);
  assert.match(compactPolicy(policy, 1000), /\ngroup arxiv +1\/3SECOND/);
  assert.equal(
    compactPolicy(policy, 80),
    "backend memory, aimd off, at most 500 in flight\nThe limits of each host: docstokg policy show\n",
  );
});

test("a command in the manifest has only flags that can be typed", () => {
  assert.equal(recordedCommand("run", { out: "papers", telemetry: true }), "run --out papers");
  assert.equal(recordedCommand("run", { telemetry: false, allowPrivate: true }), "run --no-telemetry --allow-private");
});

test("a run that is to keep no telemetry keeps none, also where its metrics are served", async t => {
  const { folder } = await temporaryFolder(t);
  const flags = ["--out", folder, "-q", "--resolvers", "landing_page", "--no-telemetry", "--metrics-port", "0"];
  const { stderr } = await runCli(["run", "http://127.0.0.1:9/a.pdf", ...flags]);
  assert.match(stderr, /^Metrics are at http:\/\/127\.0\.0\.1:\d+\/metrics\n/);
  assert.deepEqual(
    readdirSync(folder).filter(name => name.startsWith("telemetry")),
    [],
  );
});

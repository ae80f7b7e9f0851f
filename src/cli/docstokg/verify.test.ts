import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runCli, temporaryFolder } from "../../../test/cli/kit.ts";
import { workOf } from "../../harvest/identifiers/identifiers.ts";
import { openManifest } from "../../harvest/manifest/manifest.ts";
import { systemTime } from "../../time/system-time.ts";

test("verify finds missing and changed files, and --repair makes their works pending again", async () => {
  const { folder } = await temporaryFolder();
  const manifest = await openManifest(join(folder, "manifest.sqlite"), systemTime);
  const run = await manifest.beginRun("run");
  const names = ["a", "b", "c"];
  await manifest.works.add(
    run,
    names.map(name => workOf({ doi: `10.1000/${name}` })),
    { isPresent: () => true },
  );
  for (const [index, name] of names.entries()) {
    const path = `${name}.pdf`;
    writeFileSync(join(folder, path), name);
    const sha256 = createHash("sha256").update(name).digest("hex");
    const origin = { urlHash: name, url: `https://x.example/${path}`, resolver: "openalex" };
    await manifest.finish(run, index + 1, "ok", { sha256, path, bytes: 1, mediaType: "application/pdf", ...origin });
  }
  await manifest.endRun(run, "ended");
  await manifest.close();
  assert.deepEqual(await runCli(["verify", "--out", folder]).then(({ exitCode, stdout }) => [exitCode, stdout]), [
    0,
    "3 files, 3 intact\n",
  ]);

  // With a mistyped or forgotten --out every file would count as missing.
  const elsewhere = ["--manifest", join(folder, "manifest.sqlite"), "--out", join(folder, "other")];
  const mistyped = await runCli(["verify", "--repair", ...elsewhere]);
  assert.deepEqual([mistyped.exitCode, mistyped.stdout], [2, ""]);
  assert.match(mistyped.stderr, /--out: folder not found: .*other; the manifest has 3 files in it/);

  rmSync(join(folder, "a.pdf"));
  writeFileSync(join(folder, "b.pdf"), "B");
  const broken = await runCli(["verify", "--out", folder, "--json"]);
  assert.equal(broken.exitCode, 1);
  const { problems, intact } = JSON.parse(broken.stdout);
  assert.equal(intact, 1);
  assert.deepEqual(
    problems.map(({ path, problem }: { path: string; problem: string }) => `${path} ${problem}`),
    ["a.pdf missing", "b.pdf changed"],
  );
  const repaired = await runCli(["verify", "--out", folder, "--repair"]);
  assert.match(
    repaired.stdout,
    new RegExp(`2 works pending again. To download them: docstokg retry --out ${folder}\n$`),
  );
  assert.ok(existsSync(join(folder, "b.pdf.changed")));
  const status = JSON.parse((await runCli(["status", "--out", folder, "--json"])).stdout);
  assert.deepEqual(status.works, { done: 1, failed: 0, pending: 2, merged: 0, total: 3 });
});

test("export writes the works of a manifest, and refuses an unknown format", async () => {
  const { folder } = await temporaryFolder();
  const manifest = await openManifest(join(folder, "manifest.sqlite"), systemTime);
  const works = [workOf({ doi: "10.1000/a" }, { title: "A", year: 2020 })];
  await manifest.works.add(await manifest.beginRun("run"), works, { isPresent: () => true });
  await manifest.close();
  const { stdout } = await runCli(["export", "--out", folder, "--format", "bibtex"]);
  assert.match(stdout, /@misc\{doi:10\.1000\/a,\n {2}title = \{A\},\n {2}year = \{2020\},/);
  assert.equal((await runCli(["export", "--out", folder, "--state", "done"])).stdout.split("\r\n").length, 2);
  const stdoutOnly = await runCli(["export", "--out", folder, "--format", "parquet"]);
  assert.deepEqual([stdoutOnly.exitCode, stdoutOnly.stdout], [2, ""]);
  assert.match(stdoutOnly.stderr, /--to: parquet is not text: name the file to write/);
  const table = join(folder, "works.parquet");
  assert.equal((await runCli(["export", "--out", folder, "--format", "parquet", "--to", table])).exitCode, 0);
  assert.equal(readFileSync(table).subarray(0, 4).toString(), "PAR1");
  const wrong = await runCli(["export", "--out", folder, "--format", "bibtx"]);
  assert.equal(wrong.exitCode, 2);
  assert.match(wrong.stderr, /--format: "bibtx" is not one of csv, jsonl, csl, bibtex, parquet; did you mean bibtex\?/);
});

test("an export does not replace the manifest that it reads, also over a link", async () => {
  const { folder } = await temporaryFolder();
  const file = join(folder, "manifest.sqlite");
  await (await openManifest(file, systemTime)).close();
  const link = join(folder, "link.csv");
  symlinkSync(file, link);
  const before = readFileSync(file);
  for (const target of [file, link])
    for (const [flag, ...argv] of [
      ["--to", "export", "--to", target],
      ["--to", "export", "--format", "parquet", "--to", target],
      ["--export", "status", "--export", target],
    ] as const) {
      const { exitCode, stderr } = await runCli([...argv, "--out", folder]);
      const message = `${flag}: this command reads ${target}, and would replace it; name another file`;
      assert.deepEqual([exitCode, stderr], [2, `docstokg: ${message}\n`]);
    }
  assert.deepEqual(readFileSync(file), before);
});

test("a dry run says what a list would cost, and creates nothing", async () => {
  const { folder } = await temporaryFolder();
  const out = join(folder, "papers");
  const { exitCode, stdout } = await runCli([
    "run",
    "--dry-run",
    "--out",
    out,
    "2401.00001",
    "2401.00002",
    "10.1000/a",
  ]);
  assert.equal(exitCode, 0);
  assert.match(
    stdout,
    /^3 works to download: 2 arxiv, 1 doi\nEstimated time: 3\.5 s; the slowest limit is 1\/3SECOND \+ 1000\/DAY of service arxiv \(artifact\)\.\n/,
  );
  assert.equal(existsSync(out), false);
  const json = JSON.parse((await runCli(["run", "--dry-run", "--json", "--out", out, "2401.00001"])).stdout);
  assert.deepEqual([json.wanted, json.kinds, json.ms], [1, { arxiv: 1 }, 0]);
  const empty = await runCli(["run", "--dry-run", "--out", out, "--input", "-"], { input: "# no works\n" });
  assert.equal(empty.stdout, "0 works to download\n");
  const query = await runCli(["run", "--dry-run", "--query", "x", "--out", out]);
  assert.match(query.stderr, /--dry-run: cannot estimate a search: --query sends requests/);
});

test("a dry run names the keys that would allow more, with the limits of the policy, and none that is set", async () => {
  const { folder } = await temporaryFolder();
  const hints = async (argv: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const command = ["run", "--dry-run", "--json", "--resolvers", "crossref", "--out", join(folder, "x"), "10.1000/a"];
    const { stdout } = await runCli([...command, ...argv], { env });
    return JSON.parse(stdout).hints as readonly string[];
  };
  const contact = "With DOCSTOKG_MAILTO set, api.crossref.org allows: total 10/SECOND instead of 5/SECOND, ";
  const isContact = (hint: string) => hint.startsWith(contact);
  assert.ok((await hints([])).some(isContact));
  const named = /DOCSTOKG_MAILTO/;
  assert.doesNotMatch((await hints(["--mailto", "me@example.org"])).join("\n"), named);
  const left = await hints([], { DOCSTOKG_MAILTO: "me@example.org" });
  assert.doesNotMatch(left.join("\n"), named);
  // The limits of this key are higher still.
  assert.ok(left.some(hint => hint.startsWith("With CROSSREF_PLUS_API_TOKEN set, api.crossref.org allows: ")));
});

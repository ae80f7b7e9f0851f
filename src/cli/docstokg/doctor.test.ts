import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createStoreFile, runCli, temporaryFolder } from "../../../test/cli/kit.ts";
import type { DoctorFinding } from "../output/doctor-findings.ts";
import { clockCheck, nodeCheck, proxyCheck } from "./doctor-checks.ts";

async function findingsOf(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { exitCode, stdout } = await runCli(["doctor", "--json", ...argv], { env });
  const { findings } = JSON.parse(stdout) as { findings: readonly DoctorFinding[] };
  return { exitCode, findings, of: (what: string) => findings.find(finding => finding.what === what) };
}

test("doctor checks Node, policy, store, clock, identification, proxy and disk on one page", async () => {
  const { exitCode, findings } = await findingsOf([]);
  assert.equal(exitCode, 0);
  assert.deepEqual(
    findings.map(({ what }) => what),
    ["node", "policy", "policy age", "store", "clock", "contact", "API keys", "proxy", "disk"],
  );
});

test("a warning and a problem come with advice, and only a problem fails the command", async () => {
  const { exitCode, stdout } = await runCli(["doctor"]);
  assert.equal(exitCode, 0);
  assert.match(stdout, /^contact: export DOCSTOKG_MAILTO=/m);
  const away = await findingsOf(["--store", "redis://127.0.0.1:1"]);
  assert.equal(away.exitCode, 1);
  assert.equal(away.of("store")?.verdict, "problem");
  assert.match(away.of("store")?.advice ?? "", /start the store/);
});

test("doctor says which store is shared, by how many processes, and creates no file", async () => {
  const { folder, store } = await temporaryFolder();
  assert.match((await findingsOf(["--store", store])).of("store")?.detail ?? "", /no process has used it yet/);
  await createStoreFile(store);
  const found = (await findingsOf(["--store", store])).of("store");
  assert.equal(found?.verdict, "ok");
  assert.match(found?.detail ?? "", /0 running processes$/);
  await writeFile(join(folder, "list.csv"), "doi\n10.1234/abc\n");
  const foreign = await findingsOf(["--store", `sqlite:${join(folder, "list.csv")}`]);
  assert.equal(foreign.of("store")?.verdict, "problem");
});

test("doctor says that the folder of a store is missing and will be created, and names a folder that cannot be", async () => {
  const { folder } = await temporaryFolder();
  const missing = (await findingsOf(["--store", `sqlite:${join(folder, "a/b/shared.db")}`])).of("store");
  assert.equal(missing?.verdict, "warning");
  assert.equal(
    missing?.detail,
    `file not found: ${join(folder, "a/b/shared.db")}; the folder ${join(folder, "a/b")} is missing too (no process has used it yet)`,
  );
  assert.equal(missing?.advice, "check the path; a program that uses the store creates its folder");
  await writeFile(join(folder, "file"), "");
  const blocked = await findingsOf(["--store", `sqlite:${join(folder, "file/b/shared.db")}`]);
  assert.equal(blocked.exitCode, 1);
  assert.equal(blocked.of("store")?.verdict, "problem");
  assert.match(blocked.of("store")?.detail ?? "", /the folder .*file\/b cannot be created: .*\/file is not a folder/);
});

test("doctor checks the disk of the partial files for S3, and says that an output folder is a file", async () => {
  const { folder } = await temporaryFolder();
  const remote = await findingsOf(["--out", "s3://bucket/prefix"], { DOCSTOKG_MANIFEST: "postgres://a@" });
  assert.equal(remote.exitCode, 0);
  assert.match(remote.of("disk")?.detail ?? "", / free in \/.*, for partial files of s3:\/\/bucket\/prefix$/);
  const file = join(folder, "file");
  await writeFile(file, "");
  for (const out of [file, join(file, "below")]) {
    const found = await findingsOf(["--out", out]);
    assert.equal(found.exitCode, 1, out);
    const { verdict, advice } = found.of("disk") ?? {};
    assert.deepEqual([verdict, advice], ["problem", "choose another folder with --out"]);
  }
});

test("a mistyped store is a usage error, as for the other commands", async () => {
  const { exitCode, stderr } = await runCli(["doctor", "--store", "redsi://x"]);
  assert.equal(exitCode, 2);
  assert.match(stderr, /--store: unknown store "redsi:\/\/x"/);
});

test("an invalid policy is a problem with its place, and the other checks still run", async () => {
  const { exitCode, findings, of } = await findingsOf([], { DOCSTOKG_RLIMITS: "api.example.org:metadata=10/SECNOD" });
  assert.equal(exitCode, 1);
  assert.match(of("policy")?.detail ?? "", /^DOCSTOKG_RLIMITS: .*SECNOD/);
  assert.ok(findings.some(({ what }) => what === "disk"));
});

test("doctor prints no secret", async () => {
  const env = {
    HTTPS_PROXY: "http://user:hidden@proxy.example.org:3128",
    NCBI_API_KEY: "hidden",
    DOCSTOKG_MAILTO: "hidden@example.org",
  };
  const { stdout, stderr } = await runCli(["doctor"], { env });
  assert.doesNotMatch(stdout + stderr, /hidden/);
  assert.match(stdout, /set: NCBI_API_KEY/);
  assert.match(stdout, /https via http:\/\/…@proxy\.example\.org:3128/);
});

test("a clock that shows a time before the newest source of the shipped policy is a problem", () => {
  assert.equal(clockCheck(Date.UTC(2020, 0)).verdict, "problem");
  assert.equal(clockCheck(Date.UTC(2040, 0)).verdict, "ok");
});

test("a date in a note of the user's policy says nothing about the clock", async () => {
  const { folder } = await temporaryFolder();
  const file = join(folder, "limits.yaml");
  await writeFile(
    file,
    "hosts:\n  api.example.org:\n    metadata:\n      rates: [5/SECOND] # contract until 2099-12\n",
  );
  assert.equal((await findingsOf([], { DOCSTOKG_RLIMITS_YAML: file })).of("clock")?.verdict, "ok");
});

test("an old Node and a proxy URL with an unsupported scheme are problems", () => {
  assert.equal(nodeCheck({ node: "20.11.0" }).verdict, "problem");
  assert.equal(proxyCheck({ HTTPS_PROXY: "ftp://x" }).verdict, "problem");
});

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { runCli, temporaryFolder } from "../../../test/cli/kit.ts";

test("an output folder that is a file, and an invalid mapping or port, are messages with exit code 2", async () => {
  const { folder } = await temporaryFolder();
  const file = join(folder, "file");
  await writeFile(file, "");
  const run = ["run", "10.1234/a", "-q"];
  assert.deepEqual(await runCli([...run, "--out", file]), {
    exitCode: 2,
    stdout: "",
    stderr: `docstokg: --out: ${file} is not a folder\n`,
  });
  const below = await runCli([...run, "--out", join(folder, "papers"), "--manifest", join(file, "m.sqlite")]);
  assert.deepEqual([below.exitCode, below.stderr], [2, `docstokg: --manifest: ${file} is not a folder\n`]);

  const out = join(folder, "untouched");
  const mapped = await runCli([...run, "--out", out, "--connect-to", "foo", "--metrics-port", "99999"]);
  assert.equal(mapped.exitCode, 2);
  assert.match(mapped.stderr, /--connect-to: "foo" is not a mapping: .* such as "example\.org:443:127\.0\.0\.1:8443"/);
  assert.match(mapped.stderr, /--metrics-port: "99999" is not a whole number from 0 to 65535/);
  assert.equal(existsSync(out), false);
});

test("an invalid address is an error with the flag, and is not shown", async () => {
  assert.deepEqual(await runCli(["run", "10.1234/a", "-q", "--mailto", "secret address"]), {
    exitCode: 2,
    stdout: "",
    stderr:
      "docstokg: --mailto: expected an email address such as you@example.org, with an ASCII domain (value not shown)\n",
  });
});

test("a run with an invalid policy creates no folder", async () => {
  const { folder } = await temporaryFolder();
  const out = join(folder, "untouched");
  const { exitCode } = await runCli(["run", "10.1234/a", "-q", "--out", out, "--rate", "foo"]);
  assert.deepEqual([exitCode, existsSync(out)], [2, false]);
});

test("an invalid output folder is a one-line error before the first request", async () => {
  const { folder } = await temporaryFolder();
  const file = join(folder, "papers");
  await writeFile(file, "not a folder");
  for (const args of [
    ["--out", file],
    ["--out", join(file, "deeper")],
    ["--out", file, "--manifest", join(folder, "m.sqlite")],
    ["--out", join(folder, "new"), "--manifest", folder],
  ]) {
    const { exitCode, stderr } = await runCli(["run", "10.5555/a", ...args, "--no-telemetry", "--quiet"]);
    assert.equal(exitCode, 2, stderr);
    assert.match(stderr, /^docstokg: --(?:manifest|out): .*$/m);
    assert.doesNotMatch(stderr, /\n\s+at /);
  }
});

test("all formats with others, an invalid bucket, another layout in S3 and a manifest in S3 are refused", async () => {
  const { folder } = await temporaryFolder();
  const manifest = ["--manifest", join(folder, "m.sqlite")];
  for (const [args, message] of [
    [
      ["--formats", "all,pdf", "--out", folder],
      /^docstokg: --formats: all cannot be combined with other formats: it includes every format$/m,
    ],
    [
      ["--out", "s3://b/x", ...manifest],
      /^docstokg: --out: expected s3:\/\/bucket\/prefix, found "s3:\/\/b\/x"; a bucket has 3 to 63/m,
    ],
    [
      ["--out", "s3://bucket/x", "--layout", "flat", ...manifest],
      /^docstokg: --layout: files in S3 are content-addressed/m,
    ],
    [["--out", "s3://bucket/x"], /^docstokg: --manifest: a manifest cannot be in S3/m],
  ] as const) {
    const { exitCode, stderr } = await runCli(["run", "10.5555/a", ...args, "--no-telemetry", "--quiet"]);
    assert.equal(exitCode, 2, stderr);
    assert.match(stderr, message);
  }
  assert.equal(existsSync(join(folder, "m.sqlite")), false);
});

test("with an empty --mailto no address is sent, so the resolvers that need one are skipped", async () => {
  const { folder } = await temporaryFolder();
  const run = ["run", "10.1234/a", "--dry-run", "--out", folder, "--mailto", ""];
  const { stderr } = await runCli(run, { env: { DOCSTOKG_MAILTO: "you@example.org" } });
  assert.match(stderr, /^resolver unpaywall skipped: set DOCSTOKG_MAILTO or --mailto$/m);
});

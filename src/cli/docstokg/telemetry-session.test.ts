import assert from "node:assert/strict";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runCli, temporaryFolder } from "../../../test/cli/kit.ts";
import { serve } from "../../../test/http/kit.ts";
import { openManifest } from "../../harvest/manifest/manifest.ts";
import { systemTime } from "../../time/system-time.ts";

test("telemetry that cannot be recorded neither stops the run nor its metrics", async () => {
  const { folder } = await temporaryFolder();
  mkdirSync(join(folder, "telemetry.jsonl"));
  mkdirSync(join(folder, "telemetry.sqlite"));
  const flags = ["--out", folder, "-q", "--resolvers", "landing_page", "--metrics-port", "0"];
  const { exitCode, stderr } = await runCli(["run", "http://127.0.0.1:9/a.pdf", ...flags]);
  assert.match(stderr, /^Telemetry is not recorded for this run: .*\nMetrics: http:\/\/127\.0\.0\.1:\d+\/metrics\n/);
  assert.equal(exitCode, 1);
});

test("a metrics port that is in use is an error of --metrics-port", async t => {
  const { folder } = await temporaryFolder();
  const { port } = await serve(t, (_, response) => response.end());
  const { exitCode, stderr } = await runCli(["run", "a", "--out", folder, "-q", "--metrics-port", String(port)]);
  assert.equal(exitCode, 1, "as for a --dashboard-port that is in use");
  assert.match(stderr, /^docstokg: --metrics-port: metrics cannot be served on /m);
  assert.deepEqual(readdirSync(folder), []);
  const other = (await temporaryFolder()).folder;
  mkdirSync(join(other, "telemetry.jsonl"));
  const unrecorded = await runCli(["run", "a", "--out", other, "-q", "--metrics-port", String(port)]);
  assert.equal(unrecorded.exitCode, 1);
  assert.match(unrecorded.stderr, /^docstokg: --metrics-port: metrics cannot be served on /m);
});

test("a run with --no-telemetry records none, even if it serves metrics", async () => {
  const { folder } = await temporaryFolder();
  const flags = ["--out", folder, "-q", "--resolvers", "landing_page", "--no-telemetry", "--metrics-port", "0"];
  const { stderr } = await runCli(["run", "http://127.0.0.1:9/a.pdf", ...flags]);
  assert.match(stderr, /^Metrics: http:\/\/127\.0\.0\.1:\d+\/metrics\n/);
  assert.deepEqual(
    readdirSync(folder).filter(name => name.startsWith("telemetry")),
    [],
  );
});

test("a run that is refused before it begins is neither in the telemetry nor in the manifest", async () => {
  const { folder } = await temporaryFolder();
  const manifest = await openManifest(join(folder, "manifest.sqlite"), systemTime);
  const lock = await manifest.tryLock();
  const refusedRun = async (code: number, message: RegExp, ...flags: readonly string[]) => {
    const { exitCode, stderr } = await runCli(["run", "http://127.0.0.1:9/a.pdf", "--out", folder, "-q", ...flags]);
    assert.equal(exitCode, code, stderr);
    assert.match(stderr, message);
    assert.deepEqual((await manifest.reports.report()).runs, []);
    assert.deepEqual(
      readdirSync(folder).filter(name => name.startsWith("telemetry")),
      [],
    );
  };
  await refusedRun(2, /--manifest: another docstokg run uses the manifest /);
  lock?.release();
  const other = join(folder, "list.csv");
  writeFileSync(other, "doi\n10.5555/a\n");
  await refusedRun(1, /list\.csv/, "--rate-backend", "sqlite", "--rate-dsn", other);
  await manifest.close();
});

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { runCli, temporaryFolder } from "../../../test/cli/kit.ts";

test("a run with --no-telemetry records none, even if it serves metrics", async t => {
  const { folder } = await temporaryFolder(t);
  const flags = ["--out", folder, "-q", "--resolvers", "landing_page", "--no-telemetry", "--metrics-port", "0"];
  const { stderr } = await runCli(["run", "http://127.0.0.1:9/a.pdf", ...flags]);
  assert.match(stderr, /^Metrics: http:\/\/127\.0\.0\.1:\d+\/metrics\n/);
  assert.deepEqual(
    readdirSync(folder).filter(name => name.startsWith("telemetry")),
    [],
  );
});

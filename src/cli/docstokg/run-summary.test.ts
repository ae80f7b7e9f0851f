import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { runCli, temporaryFolder } from "../../../test/cli/kit.ts";

test("the summary distinguishes a work that failed in an earlier run from one that was tried now", async () => {
  const { folder } = await temporaryFolder();
  const run = ["run", "http://127.0.0.1:9/a.pdf", "--out", join(folder, "papers"), "-q", "--resolvers", "landing_page"];
  assert.match((await runCli(run)).stdout, /^0 of 1 work done, 1 failed, in /);
  assert.match(
    (await runCli(run)).stdout,
    /^0 of 1 work done, 1 failed, 1 of them in an earlier run, not retried, in /,
  );
});

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { runCli, temporaryFolder } from "../../../test/cli/kit.ts";

test("retry prints that no works are left, and which flag selects failed works", async () => {
  const { folder } = await temporaryFolder();
  const flags = ["--out", join(folder, "papers"), "-q", "--no-telemetry", "--resolvers", "landing_page", "--json"];
  // A rejected list leaves a manifest without works.
  assert.equal((await runCli(["run", "not an identifier", "--strict", ...flags])).exitCode, 2);
  const retried = await runCli(["retry", ...flags]);
  assert.equal(retried.stderr, "No unfinished works; --failed retries failed works.\n");
  const failed = await runCli(["retry", "--reason", "network", ...flags]);
  assert.equal(failed.stderr, "No unfinished works, and no failed works with reason network.\n");
});

test("retry refuses an unknown reason, and --failed beside --reason", async () => {
  const { folder } = await temporaryFolder();
  const both = await runCli(["retry", "--failed", "--reason", "network", "--out", folder]);
  assert.equal(both.exitCode, 2);
  assert.match(both.stderr, /^docstokg: --failed: has no effect with --reason/);
  // Codes of works that are done, and of attempts that gave candidates.
  for (const reason of ["ok", "duplicate", "not-modified", "found", "merged"]) {
    const refused = await runCli(["retry", "--reason", reason, "--out", folder]);
    assert.equal(refused.exitCode, 2, reason);
    const problem = `docstokg: --reason: "${reason}" is not a reason of failed works; expected one of no-resolver, `;
    assert.ok(refused.stderr.startsWith(problem), refused.stderr);
    assert.doesNotMatch(refused.stderr, /(?:of|,) (?:ok|duplicate|not-modified|found|merged)\b/);
  }
  const unknown = await runCli(["retry", "--reason", "netwrk", "--out", folder]);
  assert.equal(unknown.exitCode, 2);
  assert.match(
    unknown.stderr,
    /--reason: "netwrk" is not a reason of failed works; expected one of .*; did you mean network\?/,
  );
});

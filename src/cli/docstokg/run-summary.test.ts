import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { runCli, temporaryFolder } from "../../../test/cli/kit.ts";
import { serve } from "../../../test/http/kit.ts";
import type { HubEvent } from "../../http/hub-options.ts";
import { loadPolicy } from "../../policy/load.ts";
import { RunCounts } from "./run-counts.ts";
import type { SessionOutcome } from "./run-session.ts";
import type { RunSettings } from "./run-settings.ts";
import { printEnqueued, printSummary } from "./run-summary.ts";

test("the summary distinguishes a work that failed in an earlier run from one that was tried now", async () => {
  const { folder } = await temporaryFolder();
  const run = ["run", "http://127.0.0.1:9/a.pdf", "--out", join(folder, "papers"), "-q", "--resolvers", "landing_page"];
  assert.match((await runCli(run)).stdout, /^0 of 1 work done, 1 failed, in /);
  assert.match(
    (await runCli(run)).stdout,
    /^0 of 1 work done, 1 failed, 1 of them in an earlier run, not retried, in /,
  );
});

test("the command for the statistics of a run is quoted for a shell", async () => {
  const { folder } = await temporaryFolder();
  const out = join(folder, "my papers");
  const run = ["run", "http://127.0.0.1:9/a.pdf", "--out", out, "-q", "--resolvers", "landing_page"];
  assert.ok((await runCli(run)).stdout.includes(`\nRequest statistics: docstokg report '${out}'\n`));
});

test("the summary of --enqueue-only names the worker with the flag that finds the manifest", () => {
  const manifest = "postgres://ann@db.example.org/works";
  const printed = (env: Readonly<Record<string, string>>) => {
    let text = "";
    const stdout = { write: (part: string) => (text += part) };
    const outcome = { counts: new RunCounts(), wasInterrupted: false };
    printEnqueued(outcome, { folder: "/data/x", manifest, isJson: false }, { stdout, env });
    return text.split("\n").at(-2);
  };
  assert.equal(printed({}), `To download them: docstokg worker --manifest ${manifest}`);
  assert.equal(printed({ DOCSTOKG_MANIFEST: manifest }), "To download them: docstokg worker");
});

test("the summary advises a flag that the command takes, also for the key of a tier or partition", async () => {
  const counts = new RunCounts();
  const keys = ["api.crossref.org with mailto", "zenodo.org#0123456789abcdef", "service arxiv"];
  for (const key of keys)
    counts.listener({
      ...{ event_type: "limit_learned", key, host: key, role: "metadata", what: "rate" },
      ...{ old: "10/SECOND", new: "5/SECOND", source: "X-RateLimit" },
    } as HubEvent);
  const none = { total: 0, done: 0, failed: 0, pending: 0, merged: 0 };
  const report = { works: none, files: { count: 0, bytes: 0 }, reasons: [], resolvers: [], runs: [] };
  const outcome = { counts, report, switchedOff: new Map(), elapsedMs: 0, wasInterrupted: false, wasRejected: false };
  let text = "";
  const output = { write: (part: string) => (text += part) };
  const io = { argv: [], env: {}, stdout: output, stderr: output };
  const settings = { folder: "x", manifest: "x/manifest.db", keepsTelemetry: false, isJson: false };
  printSummary(outcome as unknown as SessionOutcome, settings as RunSettings, io);
  const targets = Array.from(text.matchAll(/--rate '([^']+)=…'/g), ([, target]) => target);
  assert.deepEqual(targets, ["api.crossref.org:metadata", "zenodo.org:metadata", "service:arxiv:metadata"]);
  await loadPolicy({ env: {}, overrides: { rate: targets.map(target => `${target}=rates:1/SECOND`) } });
});

test("the summary names a server that announced a lower limit than the policy, once", async t => {
  const { folder } = await temporaryFolder();
  const server = await serve(t, (_, response) => {
    response.writeHead(404, { "x-rate-limit-limit": "1", "x-rate-limit-interval": "10s" }).end();
  });
  const works = ["a", "b"].map(name => `${server.origin}/${name}.pdf`);
  const flags = ["--allow-private", "-q", "--resolvers", "landing_page", "--patience", "0"];
  const text = (await runCli(["run", ...works, "--out", join(folder, "papers"), ...flags])).stdout;
  const lines = text.split("\n").filter(line => line.startsWith("Lower limit announced by 127.0.0.1"));
  assert.ok(lines.length > 0, text);
  assert.match(lines[0] ?? "", /: 1\/10SECOND instead of \S+ \(.*\)\. The run used the lower limit/);
  assert.equal(new Set(lines).size, lines.length);
});

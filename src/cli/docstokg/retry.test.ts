import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { runCli, temporaryFolder } from "../../../test/cli/kit.ts";
import { pdf } from "../../../test/harvest/kit.ts";
import { serve } from "../../../test/http/kit.ts";

/** A publisher that answers 404 for every file until it is repaired. Its articles are of the year 1999. */
async function brokenPublisher(t: TestContext) {
  let isBroken = true;
  const { origin } = await serve(t, (request, response) => {
    const [, folder = "", name = ""] = (request.url ?? "").split("/");
    if (folder === "robots.txt" || (folder === "pdf" && isBroken)) response.writeHead(404).end();
    else if (folder === "pdf") response.end(pdf(name));
    else {
      response.setHeader("content-type", "text/html");
      const date = `<meta name="citation_publication_date" content="1999/01/01">`;
      response.end(
        `<!doctype html><html><head>${date}<meta name="citation_pdf_url" content="/pdf/${name}"></head></html>`,
      );
    }
  });
  const repair = () => {
    isBroken = false;
  };
  return { origin, repair };
}

const MACHINE = ["-q", "--no-telemetry", "--allow-private"];

test("retry continues with the layout, formats, resolvers and metadata of the latest run", async t => {
  const { folder } = await temporaryFolder();
  const out = join(folder, "papers");
  const { origin, repair } = await brokenPublisher(t);
  const settings = ["--layout", "content-addressed", "--resolvers", "landing_page", "--metadata", "json"];
  const ran = await runCli(["run", `${origin}/articles/a`, "--out", out, ...MACHINE, ...settings]);
  assert.match(ran.stdout, /^0 of 1 work done, 1 failed/, ran.stderr);
  repair();
  const retried = await runCli(["retry", "--failed", "--out", out, ...MACHINE]);
  assert.match(retried.stdout, /^1 of 1 work done/, retried.stdout + retried.stderr);
  assert.equal(retried.stderr, "", "no other resolver is enabled, and none is skipped");
  const stored = () =>
    readdirSync(out, { recursive: true, encoding: "utf8" }).filter(name => /\.(?:pdf|json)$/.test(name));
  const suffixes = stored().map(name => name.replace(/^.*\./, ""));
  assert.deepEqual(suffixes.toSorted(), ["json", "pdf"]);
  assert.ok(
    stored().every(name => name.startsWith("sha256")),
    stored().join(),
  );
});

test("retry applies the filters of the latest run, and --reason filtered retries without them", async t => {
  const { folder } = await temporaryFolder();
  const out = join(folder, "papers");
  const { origin, repair } = await brokenPublisher(t);
  const settings = ["--resolvers", "landing_page", "--from-year", "2020"];
  await runCli(["run", `${origin}/articles/a`, "--out", out, ...MACHINE, ...settings]);
  repair();
  const reasons = async () => JSON.parse((await runCli(["status", "--out", out, "--json"])).stdout).reasons;
  await runCli(["retry", "--failed", "--out", out, ...MACHINE]);
  assert.deepEqual(await reasons(), [{ state: "failed", reason: "filtered", works: 1 }]);
  await runCli(["retry", "--reason", "filtered", "--out", out, ...MACHINE]);
  assert.deepEqual(await reasons(), [{ state: "done", reason: "ok", works: 1 }]);
});

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

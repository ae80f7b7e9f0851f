import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../temporary-folder.ts";
import { internetFor } from "../testing/internet-kit.ts";
import { isQuick, keyOf, startDocstokg } from "./processes.ts";

test("the works of a search are downloaded like listed works", async t => {
  const internet = await internetFor(t, { seed: 2, works: 62 });
  const work = internet.works.find(isQuick);
  assert.ok(work);
  const folder = temporaryFolder("harvest");
  const args = ["run", "--query", work.title, "--max", "3", "--resolvers", "openalex", "--quiet", "--json"];
  const { stdout, stderr } = await startDocstokg(t, internet, folder, args, "").ended;
  const summary = JSON.parse(stdout);
  assert.ok(summary.works.total >= 1 && summary.works.total <= 3, stderr);
  const found = JSON.parse(stdout).works.done;
  assert.ok(found >= 1);
  assert.ok(readFileSync(join(folder, "papers", `${keyOf(work).replace(/[:/]/g, "_")}.pdf`)).length > 0);
});

test("a failed search ends the run with its error", async t => {
  const script = [{ host: "api.openalex.org", effect: "outage", status: 500 }] as const;
  const internet = await internetFor(t, { seed: 2, works: 31, script });
  const args = ["run", "--query", "anything", "--resolvers", "openalex", "--quiet"];
  const { code, stderr } = await startDocstokg(t, internet, temporaryFolder("harvest"), args, "").ended;
  assert.equal(code, 1);
  assert.match(stderr, /^docstokg: the OpenAlex search \(--query\) failed: /);
});

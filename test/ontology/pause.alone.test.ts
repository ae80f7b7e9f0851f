import assert from "node:assert/strict";
import { test } from "node:test";
import { internetFor, projectFor } from "./kit.ts";
import { pullInProcess } from "./pull-in-process.ts";

const HOST = "files.ontologies.example";

test("a pause that one process is asked for is kept by all that share its folder, once", async t => {
  const internet = await internetFor(t, {
    script: [{ act: "throttle", host: HOST, retryAfterS: 3, skip: 2, times: 1 }],
  });
  const sources = ["fern.ofn", "fern.owx", "fern.json"].map(
    (file, index) => `  f${index}: { resolver: direct, extras: { url: "https://${HOST}/${file}" } }`,
  );
  const settings = (shared: string) =>
    `parallel: 1\nratelimit: { default: 1/second, shared_dir: ${shared} }\nsources:\n${sources.join("\n")}\n`;
  const one = await projectFor(t, internet, settings("shared"));
  const other = await projectFor(t, internet, settings(`${one.folder}/shared`));
  const reports = await Promise.all([one, other].map(({ folder }) => pullInProcess(folder, internet.network)));
  for (const { outcomes } of reports) assert.deepEqual(outcomes, { f0: "fetched", f1: "fetched", f2: "fetched" });

  const { statuses = {}, arrivalsMs = [] } = (await internet.ledger()).hosts[HOST] ?? {};
  assert.deepEqual(statuses, { 200: 6, 429: 1 });
  // The third was told to wait; at one a second, whoever does not know of it would be there a second later.
  const [, , throttled = 0, next = 0] = arrivalsMs;
  assert.ok(next - throttled >= 3000, `${next - throttled} ms`);
});

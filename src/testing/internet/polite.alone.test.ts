import assert from "node:assert/strict";
import { test } from "node:test";
import { createHub } from "../../http/create-hub.ts";
import { startInternet } from "./start-internet.ts";

// The hosts whose limits are the strictest. The shipped policy leaves each of them more room than a busy machine needs.
const CALLS: readonly (readonly [url: string, role: "metadata" | "artifact"])[] = [
  ["https://export.arxiv.org/api/query?id_list=0000.0001", "metadata"],
  ["https://arxiv.org/pdf/0000.0002", "artifact"],
  ["https://export.arxiv.org/api/query?id_list=0000.0003", "metadata"],
  ["https://www.biorxiv.org/content/1", "artifact"],
  ["https://www.biorxiv.org/content/2", "artifact"],
  ["https://zenodo.org/api/records?q=1", "metadata"],
  ["https://zenodo.org/api/records?q=2", "metadata"],
  ["https://zenodo.org/api/records?q=3", "metadata"],
  ["https://api.core.ac.uk/v3/1", "metadata"],
  ["https://web.archive.org/cdx/search/cdx?url=a.example", "metadata"],
  ["https://web.archive.org/cdx/search/cdx?url=b.example", "metadata"],
];

test("the hub with the policy as shipped is never rejected, whoever is asked and however many at once", async t => {
  const internet = await startInternet({ works: 0 });
  const hub = await createHub({ network: internet.network, env: {}, mailto: "me@example.org", retry: false });
  t.after(async () => {
    await hub.close();
    await internet.close();
  });
  await Promise.all(CALLS.map(async ([url, role]) => (await hub.fetch(url, { role, maxWaitMs: 60_000 })).text()));
  const { requests, rejected, blocked, limits } = await internet.ledger();
  assert.deepEqual({ requests, rejected, blocked }, { requests: CALLS.length, rejected: 0, blocked: 0 });
  for (const { name, windows } of limits) {
    for (const { rate, limit, most } of windows)
      assert.ok(most <= limit, `${name}: ${most} came where ${rate} is allowed`);
  }
  const arxiv = limits.find(({ name }) => name === "arxiv");
  assert.deepEqual([arxiv?.requests, arxiv?.mostConcurrent], [3, 1]);
});

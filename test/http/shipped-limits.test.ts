import assert from "node:assert/strict";
import { test } from "node:test";
import { createHub } from "../../src/http/create-hub.ts";
import { startInternet } from "../../src/testing/internet/start-internet.ts";
import { mostWithin, recordWrites } from "./write-stamps.ts";

/** The hosts with the strictest documented limits. All calls to one host fall under the same limit. */
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

test("with the shipped policy a hub writes within every documented limit, however many calls are made at once", async t => {
  const internet = await startInternet({ works: 0 });
  const writes = recordWrites();
  const hub = await createHub({ network: internet.network, env: {}, mailto: "me@example.org", retry: false });
  t.after(async () => {
    writes.stop();
    await hub.close();
    await internet.close();
  });
  await Promise.all(CALLS.map(async ([url, role]) => (await hub.fetch(url, { role, maxWaitMs: 600_000 })).text()));
  const { requests, rejected, limits } = await internet.ledger();
  t.diagnostic(`rejected by the servers' own clock: ${rejected}`);
  assert.equal(requests, CALLS.length);
  const used = limits.filter(limit => limit.requests > 0);
  assert.deepEqual(used.map(({ name }) => name).sort(), [
    "arxiv",
    "biorxiv files",
    "core",
    "wayback cdx",
    "zenodo, guest",
    "zenodo, search",
  ]);
  for (const { name, at, windows } of used) {
    const hosts = new Set(at.map(place => place.split("/")[0]));
    const writesUs = [...writes.byOriginUs].flatMap(([origin, us]) => (hosts.has(new URL(origin).host) ? us : []));
    assert.ok(writesUs.length > 0, name);
    for (const { rate, limit, windowMs } of windows) {
      const most = mostWithin(writesUs, windowMs * 1000);
      assert.ok(most <= limit, `${name}: ${most} were written where ${rate} is allowed`);
    }
  }
  const arxiv = limits.find(({ name }) => name === "arxiv");
  assert.deepEqual([arxiv?.requests, arxiv?.mostConcurrent], [3, 1]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { FastestSchedule } from "../../src/cli/fastest-schedule.ts";
import { orderFor, RESOLVERS } from "../../src/content/resolvers/order.ts";
import { createHub } from "../../src/http/create-hub.ts";
import { loadPolicy } from "../../src/policy/load.ts";
import type { SimulatedWork } from "../../src/testing/internet/catalogue.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { folderFor, runFor } from "./kit.ts";
import { internetFor, keyOf } from "./processes.ts";

const DOWN = ["eprints.lakeside.example", "dspace.hillford.example"];
/** Those that are quick enough for two hundred works in a minute; the shipped limits hold for them as for all. */
const ASKED = ["pmc", "openalex", "unpaywall", "crossref"];

test("two hundred works, two hosts down: all others are done, no server rejects anything, and it is as fast as can be", async t => {
  const script = DOWN.map(host => ({ host, act: "outage" }) as const);
  const internet = await internetFor(t, { seed: 11, works: 1100, script });
  const askable = internet.works.filter(isAskable);
  const lost = DOWN.flatMap(host => askable.filter(work => isOnlyAt(work, host)).slice(0, 1));
  const others = askable.filter(work => !DOWN.some(host => isOnlyAt(work, host))).slice(0, 198);
  const works = [...others.slice(0, 50), ...lost, ...others.slice(50)];
  assert.deepEqual([lost.length, works.length], [2, 200]);

  const env = { DOCSTOKG_MAILTO: "test@example.org" };
  const { ratelimits } = await loadPolicy({ env });
  const fastest = new FastestSchedule(ratelimits.resolved, systemTime);
  const network = { ...internet.network, allowPrivate: false };
  const hub = await createHub({ env, network, retry: false, telemetry: [fastest.listener] });
  t.after(() => hub.destroy());
  const resolvers = RESOLVERS.filter(({ name }) => ASKED.includes(name));
  const order = (work: Parameters<typeof orderFor>[0]) => orderFor(work, resolvers);
  const { run, settled } = await runFor(t, folderFor(t), { hub, resolvers, order, patienceMs: 5000 });
  run.want(works.map(work => ({ key: keyOf(work), ids: { doi: work.ids.doi } })));
  run.pipeline.fed();
  await run.pipeline.run();

  const failed = [...settled].filter(([, reason]) => reason !== "ok").map(([key]) => key);
  assert.deepEqual(failed.sort(), lost.map(keyOf).sort());
  const rows = run.manifest.db.prepare("SELECT key, sha256 FROM works WHERE state = 'done'").all();
  const right = new Map(works.map(work => [keyOf(work), work.file.sha256]));
  for (const { key, sha256 } of rows) assert.equal(sha256, right.get(String(key)));
  const ledger = await internet.ledger();
  assert.deepEqual([ledger.rejected, ledger.blocked, ledger.faults], [0, 0, []]);
  // Nobody hammers a host that is down.
  for (const host of DOWN) assert.ok((ledger.hosts[host]?.requests ?? 0) <= 8, host);
  const bound = fastest.bound();
  assert.ok(bound);
  t.diagnostic(
    `${bound.requests} requests of ${bound.budget} at ${bound.rates}: ${bound.fastestMs} ms at best, ` +
      `${bound.tookMs} ms here, all requests ${bound.runMs} ms`,
  );
  assert.ok(bound.tookMs <= bound.fastestMs * 1.15, `${bound.tookMs} ms of ${bound.fastestMs} ms`);
});

function isReachable({ isGood, via }: SimulatedWork["copies"][number]): boolean {
  return isGood && via.some(name => ASKED.includes(name));
}

/**
 * Known to those who are asked, at hosts whose limits leave time for so many. Files that break off are left out: three in
 * a row cut their host off, as they should, for longer than a test may take.
 */
function isAskable({ copies, story }: SimulatedWork): boolean {
  const quick = /\.example$|^pmc-oa-opendata/;
  return (
    story !== "truncated-once" && copies.some(isReachable) && copies.every(({ url }) => quick.test(new URL(url).host))
  );
}

function isOnlyAt({ copies }: SimulatedWork, host: string): boolean {
  return copies.filter(isReachable).every(({ url }) => new URL(url).host === host);
}

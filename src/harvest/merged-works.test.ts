import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { databaseOf, pdf } from "../../test/harvest/kit.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { RateLimitExceeded } from "../errors.ts";
import type { Hub } from "../http/hub.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { Finding, Resolver } from "./resolvers/resolver.ts";
import { openRun, type RunOptions } from "./run.ts";
import type { Work, WorkIds } from "./work.ts";

const PMID: Work = { key: "pmid:7", ids: { pmid: "7" } };
const DOI: Work = { key: "doi:10.1/b", ids: { doi: "10.1/b" } };
const COPY: Finding = { kind: "found", candidates: [{ url: "https://publisher.example/7.pdf", kind: "pdf" }] };
const UNKNOWN: Finding = { kind: "none", reason: "unknown-work" };

/** A service that is asked about one kind of identifiers. */
const serviceFor = (scheme: keyof WorkIds, finding: () => Finding): Resolver => ({
  name: `by-${scheme}`,
  needs: [],
  requestFor: ({ ids }) =>
    ids[scheme] === undefined ? undefined : { url: `https://${scheme}.example/${ids[scheme]}`, role: "metadata" },
  parse: finding,
});

interface Listed extends Partial<RunOptions> {
  readonly folder: string;
  readonly works: readonly Work[];
  /** Added to the run at the first request. @default none */
  readonly later?: readonly Work[];
  readonly resolvers: readonly Resolver[];
  readonly isRefresh?: boolean;
  readonly isRetry?: boolean;
  /** Called before each request. */
  readonly onRequest?: (url: string) => unknown;
  /** @default 200 */
  readonly statusOf?: (url: string) => number;
}

/** Runs to the end. */
async function runOf({ folder, works, later = [], resolvers, onRequest, statusOf, ...options }: Listed) {
  const { isRefresh, isRetry } = options;
  const settled: string[] = [];
  const urls: string[] = [];
  const request = async (url: string | URL) => {
    const { href } = new URL(url);
    await onRequest?.(href);
    if (urls.push(href) === 1) await run.addWorks(later);
    return {
      statusCode: statusOf?.(href) ?? 200,
      headers: {},
      body: Readable.from([href.endsWith(".pdf") ? pdf("7") : Buffer.from("{}")]),
    };
  };
  const time = new FakeTime();
  const run = await openRun({
    ...{ time, folder, manifest: join(folder, "manifest.sqlite"), command: "test" },
    ...{ hub: { request } as unknown as Pick<Hub, "request">, resolvers, order: () => resolvers },
    onSettled: ({ key }, state, reason) => settled.push(`${key} ${state} ${reason}`),
    ...options,
  });
  await run.addWorks(works, { isRefresh, isRetry });
  run.pipeline.inputEnded();
  const ended = run.pipeline.run();
  let isOver = false;
  ended.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await setImmediate();
    if (run.pipeline.inFlight === 0 && time.nextTimerMs !== undefined) await time.advance(time.nextTimerMs);
  }
  await ended;
  const rows = databaseOf(run.manifest)
    .prepare("SELECT key, state, reason, ids, metadata FROM works ORDER BY id")
    .all();
  const files = (await run.manifest.reports.storedFiles()).length;
  await run.close("ended");
  return { settled, urls, rows, files, ms: time.monotonicUs() / 1000 };
}

for (const list of [
  [PMID, DOI],
  [DOI, PMID],
])
  test(`the copy that one of two works has found is used for both, with ${list[0]?.key} first in the list`, async () => {
    const folder = temporaryFolder("merged");
    const metadata = { title: "A title" };
    const resolvers = [
      serviceFor("pmid", () => ({ ...COPY, ids: DOI.ids, metadata })),
      serviceFor("doi", () => UNKNOWN),
    ];
    for (const maxOpen of [1, 2000]) {
      const { settled, rows } = await runOf({ folder: join(folder, `${maxOpen}`), works: list, resolvers, maxOpen });
      const done = settled.filter(each => each.endsWith(" done ok"));
      assert.equal(done.length, 1, settled.join(", "));
      const kept = rows.find(({ reason }) => reason === "ok");
      assert.deepEqual(JSON.parse(String(kept?.["ids"])), { doi: "10.1/b", pmid: "7" });
      assert.equal(JSON.parse(String(kept?.["metadata"])).title, "A title");
    }
  });

test("a work that waits for a spent quota is tried at once with the copy of a work that was merged into it", async () => {
  const folder = temporaryFolder("merged");
  const slow = { kind: "found", candidates: [{ url: "https://slow.example/7.pdf", kind: "pdf" }] } as const;
  const refused = Promise.withResolvers<void>();
  const onRequest = async (url: string) => {
    const { host } = new URL(url);
    if (host === "pmid.example") await refused.promise;
    if (host !== "slow.example") return;
    refused.resolve();
    const constraint = { kind: "window", owner: host, limit: "1/DAY" } as const;
    throw new RateLimitExceeded({ host, role: "artifact", constraint, retryAfterMs: 600_000, maxWaitMs: 100 });
  };
  const resolvers = [serviceFor("doi", () => slow), serviceFor("pmid", () => ({ ...COPY, ids: DOI.ids }))];
  const { settled, ms } = await runOf({ folder, works: [DOI, PMID], resolvers, onRequest });
  assert.deepEqual(settled, ["pmid:7 merged merged", "doi:10.1/b done ok"]);
  assert.ok(ms < 1000, `${ms}`);
});

test("a work that absorbs a failed one is searched by the identifiers of both", async () => {
  const folder = temporaryFolder("merged");
  const found = { isUp: false };
  const resolvers = [
    serviceFor("doi", () => ({ kind: "none", reason: "no-copy", ids: { openalex: "W1" } })),
    serviceFor("pmid", () => (found.isUp ? COPY : UNKNOWN)),
  ];
  const earlier: Work = { key: "openalex:W1", ids: { openalex: "W1", pmid: "7" } };
  assert.deepEqual((await runOf({ folder, works: [earlier], resolvers })).settled, ["openalex:W1 failed unknown-work"]);
  found.isUp = true;
  assert.deepEqual((await runOf({ folder, works: [DOI], resolvers })).settled, ["doi:10.1/b done ok"]);
});

test("the file of a refreshed work belongs to the work that it is merged into", async () => {
  const folder = temporaryFolder("merged");
  const found: { finding: Finding } = { finding: COPY };
  const resolvers = [serviceFor("pmid", () => found.finding), serviceFor("doi", () => UNKNOWN)];
  await runOf({ folder, works: [PMID], resolvers });
  found.finding = { kind: "none", reason: "no-copy", ids: DOI.ids };
  const { settled, rows, files } = await runOf({ folder, works: [PMID, DOI], resolvers, isRefresh: true });
  assert.deepEqual(settled, ["pmid:7 merged merged", "doi:10.1/b done no-copy"]);
  assert.equal(rows.find(({ key }) => key === DOI.key)?.["state"], "done");
  assert.equal(files, 1);
});

test("a work is not merged into a done one whose file is missing", async () => {
  const folder = temporaryFolder("merged");
  const resolvers = [serviceFor("pmid", () => ({ ...COPY, ids: DOI.ids })), serviceFor("doi", () => COPY)];
  await runOf({ folder, works: [DOI], resolvers });
  rmSync(join(folder, "doi_10.1_b.pdf"));
  const { settled, files } = await runOf({ folder, works: [PMID], resolvers });
  assert.deepEqual(settled, ["pmid:7 done ok"]);
  assert.equal(files, 1);
});

test("a work in memory is also searched by the identifiers that a later list adds to it", async () => {
  const folder = temporaryFolder("merged");
  const resolvers = [serviceFor("doi", () => UNKNOWN), serviceFor("pmid", () => COPY)];
  const more: Work = { ...DOI, ids: { ...DOI.ids, ...PMID.ids } };
  const later = { folder, works: [DOI], resolvers, later: [more] };
  assert.deepEqual((await runOf(later)).settled, ["doi:10.1/b done ok"]);
});

test("a retried work requests a URL again that has failed for a work that was merged into it", async () => {
  const folder = temporaryFolder("merged");
  const server = { status: 403 };
  const resolvers = [
    serviceFor("pmid", () => COPY),
    { ...serviceFor("pmid", () => ({ kind: "none", reason: "no-copy", ids: DOI.ids })), name: "ids-by-pmid" },
  ];
  const statusOf = (url: string) => (url.endsWith(".pdf") ? server.status : 200);
  const options = { folder, resolvers, statusOf, maxOpen: 1 };
  const first = await runOf({ ...options, works: [PMID, DOI] });
  assert.deepEqual(first.settled, ["pmid:7 merged merged", "doi:10.1/b failed http-status"]);
  assert.equal(first.urls.filter(url => url.endsWith(".pdf")).length, 1);
  server.status = 200;
  const retried = await runOf({ ...options, works: [DOI], isRetry: true });
  assert.deepEqual(retried.settled, ["doi:10.1/b done ok"]);
});

test("a URL that has failed is not requested again after its work is merged into a third one", async () => {
  const folder = temporaryFolder("merged");
  const pmcid: Work = { key: "pmcid:PMC7", ids: { pmcid: "PMC7" } };
  const resolvers = [
    serviceFor("pmid", () => ({ ...COPY, ids: pmcid.ids })),
    serviceFor("pmcid", () => ({ kind: "none", reason: "no-copy", ids: DOI.ids })),
  ];
  const statusOf = (url: string) => (url.endsWith(".pdf") ? 403 : 200);
  const { settled, urls } = await runOf({ folder, works: [PMID, pmcid, DOI], resolvers, statusOf, maxOpen: 1 });
  assert.deepEqual(settled, ["pmid:7 merged merged", "pmcid:PMC7 merged merged", "doi:10.1/b failed http-status"]);
  assert.equal(urls.filter(url => url.endsWith(".pdf")).length, 1, urls.join(", "));
});

test("with all formats, a work in memory downloads the supplements of a work that was merged into it", async () => {
  const folder = temporaryFolder("merged");
  const supplement = { url: "https://publisher.example/7.csv", kind: "file", role: "supplement" } as const;
  const resolvers = [
    serviceFor("doi", () => COPY),
    serviceFor("pmid", () => ({ kind: "found", candidates: [supplement], ids: DOI.ids })),
  ];
  const merged = Promise.withResolvers<void>();
  const settled: string[] = [];
  const { files } = await runOf({
    ...{ folder, works: [DOI, PMID], resolvers, formats: "all" },
    onRequest: url => (url.endsWith(".pdf") ? merged.promise : undefined),
    onSettled: ({ key }, state) => {
      settled.push(`${key} ${state}`);
      merged.resolve();
    },
  });
  assert.deepEqual(settled, ["pmid:7 merged", "doi:10.1/b done"]);
  assert.equal(files, 2);
});

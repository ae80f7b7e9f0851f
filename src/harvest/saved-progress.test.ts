import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import { databaseOf, pdf } from "../../test/harvest/kit.ts";
import { BreakerOpenError } from "../errors.ts";
import type { Hub } from "../http/hub.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { FileKind } from "./downloads/file-check.ts";
import type { Resolver } from "./resolvers/resolver.ts";
import { openRun } from "./run.ts";

const INDEX: Resolver = {
  name: "index",
  needs: [],
  requestFor: ({ key }) => ({ url: `https://index.example/${key}`, role: "metadata" }),
  parse: () => ({ kind: "found", candidates: [{ url: "https://publisher.example/a", kind: "pdf" }] }),
};
/** A file behind two redirects. */
const REDIRECTS: Readonly<Record<string, string>> = {
  "publisher.example": "https://links.example/a",
  "links.example": "https://cdn.example/a.pdf",
};

interface StoppedRun {
  readonly folder: string;
  /** A process that dies leaves what the manifest has at the request to this host. */
  readonly stopsAt?: string;
  readonly cookie?: string;
  /** This host refuses requests for longer than the run waits. */
  readonly refusesAt?: string;
  /** The query of the URL of the file. */
  readonly query?: string;
  readonly formats?: readonly FileKind[];
}

/** The hosts that one run has sent requests to. */
async function hostsOf({
  folder,
  stopsAt,
  cookie,
  formats,
  refusesAt,
  query = "",
}: StoppedRun): Promise<readonly string[]> {
  const hosts: string[] = [];
  const request = async (url: string | URL, { signal }: { readonly signal?: AbortSignal } = {}) => {
    const { host } = new URL(url);
    hosts.push(host);
    if (host === stopsAt) run.pipeline.stop();
    signal?.throwIfAborted();
    if (host === refusesAt) {
      const constraint = { kind: "cooldown", owner: host, limit: "Retry-After" } as const;
      const refusal = {
        host,
        role: "artifact",
        constraint,
        reason: "retry-after",
        cooldownRemainingMs: 60_000,
      } as const;
      throw new BreakerOpenError(refusal);
    }
    const location = REDIRECTS[host] && `${REDIRECTS[host]}${query}`;
    const body = (content: string | Buffer) => Readable.from([Buffer.from(content)]);
    if (host === "index.example") return { statusCode: 200, headers: {}, body: body("{}") };
    if (location === undefined)
      return { statusCode: 200, headers: { "content-type": "application/pdf" }, body: body(pdf("a")) };
    return { statusCode: 302, headers: { location, ...(cookie && { "set-cookie": cookie }) }, body: body("") };
  };
  const time = new FakeTime();
  // The refusal of an earlier run has ended.
  if (refusesAt === undefined) await time.advance(60_001);
  const run = await openRun({
    ...{ time, folder, manifest: join(folder, "manifest.sqlite"), command: "test" },
    ...{ hub: { request } as unknown as Pick<Hub, "request">, resolvers: [INDEX], order: () => [INDEX] },
    ...{ formats, maxBreakerWaitMs: 0 },
  });
  if ((await run.addUnfinished()) === 0) await run.addWorks([{ key: "doi:10.5555/a", ids: { doi: "10.5555/a" } }]);
  run.pipeline.inputEnded();
  await run.pipeline.run();
  await run.close("interrupted");
  return hosts;
}

function emptyFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "docstokg-progress-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("no step of a work is repeated that had ended when its process died", async t => {
  const folder = emptyFolder(t);
  const first = await hostsOf({ folder, stopsAt: "links.example" });
  assert.deepEqual(first, ["index.example", "publisher.example", "links.example"]);
  assert.deepEqual(await hostsOf({ folder, stopsAt: "cdn.example" }), ["links.example", "cdn.example"]);
  assert.deepEqual(await hostsOf({ folder }), ["cdn.example"]);
});

test("a retry of a reason starts these works again, and continues those that a spent quota has stopped", async t => {
  const folder = emptyFolder(t);
  const open = () =>
    openRun({
      ...{ time: new FakeTime(), folder, manifest: join(folder, "manifest.sqlite"), command: "test" },
      ...{ hub: { request: assert.fail } as unknown as Pick<Hub, "request">, resolvers: [INDEX], order: () => [INDEX] },
    });
  const failures = ["network", "rate-limited", "no-copy"] as const;
  const added = async (retry?: Parameters<Awaited<ReturnType<typeof open>>["addUnfinished"]>[0]) => {
    const first = await open();
    await first.addUnfinished({});
    await first.addWorks(failures.map((_, index) => ({ key: `pmid:${index}`, ids: { pmid: `${index}` } })));
    for (const { id, key } of databaseOf(first.manifest).prepare("SELECT id, key FROM works").all())
      await first.manifest.fail(Number(id), failures[Number(String(key).slice(5))] ?? "ok", undefined, "{}");
    await first.close("ended");
    const second = await open();
    const count = await second.addUnfinished(retry);
    const rows = databaseOf(second.manifest)
      .prepare("SELECT reason, progress FROM works WHERE state = 'pending' ORDER BY key")
      .all();
    await second.close("interrupted");
    assert.equal(count, rows.length);
    return rows.map(({ reason, progress }) => `${reason}: ${progress === null ? "starts again" : "continues"}`);
  };
  assert.deepEqual(await added(), ["rate-limited: continues"]);
  assert.deepEqual(await added({ reason: "network" }), ["network: starts again", "rate-limited: continues"]);
  assert.deepEqual(await added({ reason: "rate-limited" }), ["rate-limited: starts again"]);
  assert.deepEqual(
    await added({}),
    failures.map(reason => `${reason}: starts again`),
  );
});

test("redirects that set a cookie are followed again from their beginning", async t => {
  const folder = emptyFolder(t);
  await hostsOf({ folder, stopsAt: "cdn.example", cookie: "session=1" });
  assert.deepEqual(await hostsOf({ folder }), ["publisher.example", "links.example", "cdn.example"]);
});

test("a work that is refused behind redirects with a cookie or a secret continues with the first of them", async t => {
  for (const given of [{ cookie: "session=1" }, { query: "?token=Sesame" }]) {
    const folder = emptyFolder(t);
    await hostsOf({ folder, refusesAt: "cdn.example", ...given });
    assert.doesNotMatch(readFileSync(join(folder, "manifest.sqlite"), "latin1"), /Sesame/);
    assert.deepEqual(await hostsOf({ folder, ...given }), ["publisher.example", "links.example", "cdn.example"]);
  }
});

test("a run that wants other formats begins again with the first query", async t => {
  const folder = emptyFolder(t);
  await hostsOf({ folder, stopsAt: "publisher.example", formats: ["xml", "pdf"] });
  assert.deepEqual(await hostsOf({ folder, stopsAt: "publisher.example", formats: ["xml", "pdf"] }), [
    "publisher.example",
  ]);
  assert.deepEqual((await hostsOf({ folder, formats: ["pdf"] }))[0], "index.example");
});

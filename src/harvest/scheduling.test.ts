import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { databaseOf } from "../../test/harvest/kit.ts";
import { runVirtually, type VirtualHub, virtualHub } from "../../test/harvest/virtual-hub.ts";
import { BreakerOpenError, type OpenCircuit } from "../errors.ts";
import { loadPolicy } from "../policy/load.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { json, type SimulatedReply, type SimulatedRequest, text } from "../testing/internet/exchange.ts";
import { makeHostDirectory } from "../testing/internet/host-directory.ts";
import { identify } from "./identifiers/identifiers.ts";
import type { Reason } from "./reason.ts";
import { orderFor, RESOLVERS } from "./resolvers/order.ts";
import type { Resolver } from "./resolvers/resolver.ts";
import { type HarvestRun, openRun, type RunOptions } from "./run.ts";
import type { Work } from "./work.ts";

/** The resolvers that need no key. */
const KEYLESS = RESOLVERS.filter(({ needs }) => needs.every(name => name === "DOCSTOKG_MAILTO"));

interface VirtualRun {
  readonly run: HarvestRun;
  readonly virtual: VirtualHub;
  readonly time: FakeTime;
  readonly settled: Map<string, { readonly reason: Reason; readonly atMs: number }>;
}

async function virtualRun(
  t: TestContext,
  works: readonly Work[],
  answer: (request: SimulatedRequest) => SimulatedReply,
  {
    onOpened,
    policy,
    ...options
  }: Partial<RunOptions> & {
    readonly virtual?: VirtualHub;
    readonly policy?: RatelimitsOptions;
    readonly time?: FakeTime;
    readonly onOpened?: (run: HarvestRun) => void;
  } = {},
): Promise<VirtualRun> {
  const { time = new FakeTime(), resolvers = KEYLESS } = options;
  const virtual = options.virtual ?? (await virtualHub({ time, answer, limits: policy }));
  const folder = mkdtempSync(join(tmpdir(), "docstokg-virtual-"));
  const settled: VirtualRun["settled"] = new Map();
  const run = await openRun({
    ...{ hub: virtual.hub, time, folder, manifest: join(folder, "manifest.sqlite"), command: "test" },
    order: work => orderFor(work, resolvers),
    onSettled: ({ key }, _, reason) => settled.set(key, { reason, atMs: time.monotonicUs() / 1000 }),
    random: () => 0.5,
    ...options,
    resolvers,
  });
  t.after(async () => {
    await run.close("ended");
    rmSync(folder, { recursive: true, force: true });
  });
  onOpened?.(run);
  await run.addWorks(works);
  run.pipeline.inputEnded();
  await runVirtually(time, run, virtual);
  return { run, virtual, time, settled };
}

function worksOf(tokens: readonly string[]): readonly Work[] {
  return tokens.map(token => {
    const named = identify(token);
    assert.ok("work" in named, token);
    return named.work;
  });
}

const numbered = (count: number, nameOf: (index: number) => string) =>
  Array.from({ length: count }, (_, at) => nameOf(at));

test("works that are open nowhere settle as fast as the limits per second allow, and none waits for an hourly limit", async t => {
  // Every service knows no copy; the landing pages link to none.
  const directory = makeHostDirectory({ seed: 5, works: 0, bigOntologyBytes: 10_000 });
  const closed = numbered(120, at => `10.5555/closed.${at}`);
  const { settled, virtual, time } = await virtualRun(t, worksOf(closed), request => directory.answer(request));
  assert.equal(settled.size, 120);
  // HAL allows one request per second, and every work is asked about there.
  const elapsedS = time.monotonicUs() / 1e6;
  assert.equal(virtual.sent.filter(({ host }) => host === "api.archives-ouvertes.fr").length, 120);
  assert.ok(elapsedS >= 119 && elapsedS <= 132, `${elapsedS} s`);
  assert.equal(virtual.sent.filter(({ host }) => host === "api.openaire.eu").length, 50);
  const reasons = [...settled.values()].map(({ reason }) => reason);
  assert.equal(reasons.filter(reason => reason === "rate-limited").length, 70);
  assert.deepEqual(virtual.rejected, []);
});

/** Only arXiv answers with a file, and openalex knows each DOI with a copy at a host without a limit. */
const PDF = Buffer.from(
  `%PDF-1.4\n1 0 obj <</Type /Pages>> endobj ${" ".repeat(300)}\nxref\ntrailer <</Root 1 0 R>>\nstartxref\n0\n%%EOF\n`,
);
function openCopies({ host, path, query }: SimulatedRequest): SimulatedReply {
  if (host === "arxiv.org" || host.endsWith(".example")) {
    const body = Buffer.concat([PDF, Buffer.from(path)]);
    return { status: 200, headers: { "content-type": "application/pdf" }, body };
  }
  if (host !== "api.openalex.org") return text("no", 404);
  const dois = (query.get("filter") ?? "").replace(/^doi:/, "").split("|");
  const results = dois.map((doi, at) => ({
    id: `https://openalex.org/W${at + 1}${doi.replace(/\D/g, "")}`,
    doi: `https://doi.org/${doi}`,
    open_access: { is_oa: true, oa_url: `https://files${at % 8}.example/${encodeURIComponent(doi)}.pdf` },
  }));
  return json({ meta: { count: results.length }, results });
}

/** The shipped limits, with 40 requests to arXiv a day instead of 1000. */
async function fewArxivRequests(): Promise<RatelimitsOptions> {
  const { options } = (await loadPolicy({ env: {} })).ratelimits;
  const rates = ["1/3SECOND", "40/DAY"];
  const arxiv = { ...options.services?.["arxiv"], artifact: { rates, max_delay_ms: 10_000 } };
  return { ...options, services: { ...options.services, arxiv } } as RatelimitsOptions;
}

test("a long queue of a slow host at the head of the list delays no work behind it", async t => {
  const arxivIds = numbered(600, at => `2401.${String(at + 1).padStart(5, "0")}`);
  const dois = numbered(50, at => `10.5555/open.${at}`);
  let mostOpen = 0;
  let opened: HarvestRun | undefined;
  const works = worksOf([...arxivIds, ...dois]);
  const { settled, virtual, run } = await virtualRun(
    t,
    works,
    request => {
      mostOpen = Math.max(mostOpen, opened?.pipeline.openWorks ?? 0);
      return openCopies(request);
    },
    {
      maxBreakerWaitMs: 0,
      policy: await fewArxivRequests(),
      onOpened: made => {
        opened = made;
      },
    },
  );
  const doiTimesMs = dois.map(doi => settled.get(`doi:${doi}`)?.atMs ?? Number.POSITIVE_INFINITY);
  assert.ok(Math.max(...doiTimesMs) <= 5000, `${Math.max(...doiTimesMs)} ms`);
  assert.ok(mostOpen <= 300, `${mostOpen} works in memory`);
  // This arXiv allows 40 requests a day: the others fail when nothing else is left to do.
  assert.equal(virtual.sent.filter(({ host }) => host === "arxiv.org").length, 40);
  const reasons = arxivIds.map(id => settled.get(`arxiv:${id}`)?.reason);
  assert.equal(reasons.filter(reason => reason === "ok").length, 40);
  assert.equal(reasons.filter(reason => reason === "rate-limited").length, 560);
  const row = databaseOf(run.manifest).prepare("SELECT message FROM works WHERE reason = 'rate-limited' LIMIT 1").get();
  assert.match(String(row?.["message"]), /^40\/DAY of (?:service )?arxiv is spent, next slot at \d{4}-/);
});

test("queries wait only seconds for others to share a request with while the other works are at a slow host", async t => {
  const arxivIds = numbered(600, at => `2401.${String(at + 1).padStart(5, "0")}`);
  // Fewer than one request of OpenAlex may name.
  const dois = numbered(40, at => `10.5555/open.${at}`);
  const { settled, virtual } = await virtualRun(t, worksOf([...arxivIds, ...dois]), openCopies, {
    maxBreakerWaitMs: 0,
    policy: await fewArxivRequests(),
  });
  const doiTimesMs = dois.map(doi => settled.get(`doi:${doi}`)?.atMs ?? Number.POSITIVE_INFINITY);
  assert.ok(Math.max(...doiTimesMs) <= 5000, `${Math.max(...doiTimesMs)} ms`);
  assert.equal(virtual.sent.filter(({ host, atMs }) => host === "api.openalex.org" && atMs <= 5000).length, 1);
});

test("queries of works that come one by one share requests while a slow service has works in the manifest", async t => {
  // Zenodo allows a file each 5 s, and has lost these; all works end at HAL, which allows a request per second.
  const lost = numbered(30, at => `10.5281/zenodo.${1000 + at}`);
  const closed = numbered(400, at => `10.5555/closed.${at}`);
  const { settled, virtual, time } = await virtualRun(
    t,
    worksOf([...lost, ...closed]),
    ({ host, path }) => {
      const record = /^\/api\/records\/(\d+)$/.exec(path)?.[1];
      if (host === "zenodo.org" && record !== undefined)
        return json({ id: Number(record), metadata: { title: "Lost" }, files: [{ key: "a.pdf" }] });
      if (host === "api.openalex.org") return json({ meta: { count: 0 }, results: [] });
      return text("no", 404);
    },
    { resolvers: RESOLVERS.filter(({ name }) => ["zenodo", "openalex", "hal"].includes(name)) },
  );
  assert.equal(settled.size, 430);
  assert.equal(virtual.sent.filter(({ path }) => path.endsWith("/files/a.pdf")).length, 30);
  const calls = virtual.sent.filter(({ host }) => host === "api.openalex.org").length;
  assert.ok(calls <= 20, `${calls} requests to OpenAlex`);
  assert.ok(time.monotonicUs() <= 440e6, `${time.monotonicUs() / 1e6} s`);
});

test("works behind signed URLs of a slow host repeat no request while its queue is full", async t => {
  const dois = numbered(600, at => `10.5555/open.${at}`);
  const index: Resolver = {
    name: "index",
    needs: [],
    requestFor: ({ ids }) => ({ url: `https://index.example/${ids.doi}`, role: "metadata" }),
    parse: ({ url }) => ({
      kind: "found",
      candidates: [{ url: `https://publisher.example${new URL(url).pathname}`, kind: "pdf" }],
    }),
  };
  const answer = ({ host, path }: SimulatedRequest): SimulatedReply => {
    if (host === "index.example") return json({});
    if (host === "cdn.example") return { status: 200, headers: {}, body: Buffer.concat([PDF, Buffer.from(path)]) };
    return { status: 302, headers: { location: `https://cdn.example${path}?token=Sesame` }, body: Buffer.alloc(0) };
  };
  const fast = { metadata: { rates: ["100/SECOND"] }, artifact: { rates: ["100/SECOND"] } };
  const slow = { artifact: { rates: ["2/SECOND"], max_delay_ms: 10_000 } };
  const hosts = { "index.example": fast, "publisher.example": fast, "cdn.example": slow };
  const { settled, virtual } = await virtualRun(t, worksOf(dois), answer, {
    resolvers: [index],
    order: () => [index],
    policy: { version: 1, hosts },
  });
  assert.equal([...settled.values()].filter(({ reason }) => reason === "ok").length, 600);
  for (const name of Object.keys(hosts))
    assert.equal(virtual.sent.filter(({ host }) => host === name).length, 600, name);
});

test("a run waits for a spent quota within its patience, and the works continue where they stopped", async t => {
  const arxivIds = numbered(45, at => `2401.${String(at + 1).padStart(5, "0")}`);
  const { settled, virtual, time } = await virtualRun(t, worksOf(arxivIds), openCopies, {
    maxBreakerWaitMs: 86_400_000,
    policy: await fewArxivRequests(),
  });
  assert.deepEqual(new Set([...settled.values()].map(({ reason }) => reason)), new Set(["ok"]));
  assert.equal(virtual.sent.filter(({ host }) => host === "arxiv.org").length, 45);
  assert.ok(time.monotonicUs() / 1e6 >= 86_400);
});

type Refusal = Pick<OpenCircuit, "reason" | "cooldownRemainingMs">;

/** A hub with these hosts in cooldown or with an open circuit for the first day. It refuses as the real one does. */
async function refusingHub(
  time: FakeTime,
  answer: (request: SimulatedRequest) => SimulatedReply,
  refusals: Readonly<Record<string, () => Refusal>>,
) {
  const virtual = await virtualHub({ time, answer, isEnforced: false, limits: { version: 1 } });
  const request: typeof virtual.hub.request = async (url, options) => {
    const { host } = new URL(url);
    const refusal = time.monotonicUs() < DAY_US ? refusals[host]?.() : undefined;
    if (refusal === undefined) return virtual.hub.request(url, options);
    const constraint = { kind: "breaker", owner: host, limit: "circuit" } as const;
    throw new BreakerOpenError({ host, role: "artifact", constraint, ...refusal });
  };
  return { time, virtual, hub: { request } };
}

const DAY_US = 86_400_000_000;
const openCircuit = (): Refusal => ({ reason: "failures", cooldownRemainingMs: 60_000 });

test("a server that announces a spent quota is not waited for beyond the patience", async t => {
  const time = new FakeTime();
  const inCooldown = (): Refusal => ({
    reason: "retry-after",
    cooldownRemainingMs: (DAY_US - time.monotonicUs()) / 1000,
  });
  const { settled } = await virtualRun(t, worksOf(["10.5555/a", "10.5555/b"]), openCopies, {
    ...(await refusingHub(time, openCopies, { "files0.example": inCooldown })),
    resolvers: RESOLVERS.filter(({ name }) => name === "openalex"),
  });
  assert.deepEqual([...settled].map(([key, { reason }]) => `${key} ${reason}`).sort(), [
    "doi:10.5555/a rate-limited",
    "doi:10.5555/b ok",
  ]);
  assert.ok(time.monotonicUs() < 60e6, "the run does not wait");
});

/** A service that knows copies at these URLs. */
function indexOf(...urls: readonly string[]): Resolver {
  return {
    name: "index",
    needs: [],
    requestFor: ({ ids }) => ({ url: `https://index.example/${ids.doi}`, role: "metadata" }),
    parse: () => ({ kind: "found", candidates: urls.map(url => ({ url, kind: "pdf" })) }),
  };
}

test("a work whose URL has a secret waits for an open circuit within the patience and repeats no request", async t => {
  for (const url of ["https://cdn.example/a?token=Sesame", "https://publisher.example/a"]) {
    const time = new FakeTime();
    const answer = ({ host }: SimulatedRequest): SimulatedReply =>
      host === "publisher.example"
        ? { status: 302, headers: { location: "https://cdn.example/a?token=Sesame" }, body: Buffer.alloc(0) }
        : json({});
    const index = indexOf(url);
    const { settled, virtual } = await virtualRun(t, worksOf(["10.5555/a"]), answer, {
      ...(await refusingHub(time, answer, { "cdn.example": openCircuit })),
      resolvers: [index],
      order: () => [index],
    });
    assert.deepEqual([...settled.values()], [{ reason: "breaker-open", atMs: 900_000 }]);
    const hosts = virtual.sent.map(({ host }) => host);
    assert.deepEqual(hosts, [...new Set(hosts)]);
  }
});

test("a work that waits for an open circuit and a spent quota is over when both last longer than the patience", async t => {
  const time = new FakeTime();
  const spent = (): Refusal => ({ reason: "retry-after", cooldownRemainingMs: (DAY_US - time.monotonicUs()) / 1000 });
  const index = indexOf("https://down.example/a.pdf", "https://spent.example/a.pdf");
  const { settled, run } = await virtualRun(t, worksOf(["10.5555/a"]), () => json({}), {
    ...(await refusingHub(time, () => json({}), { "down.example": openCircuit, "spent.example": spent })),
    resolvers: [index],
    order: () => [index],
  });
  assert.deepEqual([...settled.values()], [{ reason: "rate-limited", atMs: 900_000 }]);
  const row = databaseOf(run.manifest).prepare("SELECT message, progress FROM works").get();
  assert.match(String(row?.["message"]), /^spent\.example is in cooldown/);
  // A retry continues with both downloads.
  for (const host of ["down", "spent"]) assert.match(String(row?.["progress"]), new RegExp(`${host}\\.example/a`));
});

test("a resolver that refuses the email address is asked once and switched off, with its first message", async t => {
  const refused = json({ HTTP_status_code: 422, error: true, message: "Please use your own email address" }, 422);
  const { run, virtual, settled } = await virtualRun(
    t,
    worksOf(numbered(30, at => `10.5555/x.${at}`)),
    ({ host }) => (host === "api.unpaywall.org" ? refused : text("no", 404)),
    { workers: 1, resolvers: RESOLVERS.filter(({ name }) => name === "unpaywall" || name === "hal") },
  );
  assert.equal(virtual.sent.filter(({ host }) => host === "api.unpaywall.org").length, 1);
  assert.equal(virtual.sent.filter(({ host }) => host === "api.archives-ouvertes.fr").length, 30);
  assert.match(
    run.pipeline.switchedOff.get("unpaywall") ?? "",
    /rejected the email address \(--mailto or DOCSTOKG_MAILTO\)/,
  );
  assert.equal(settled.size, 30);
});

test("a service that throttles with status 403 is asked again later and stays switched on", async t => {
  let answers = 0;
  const throttledOnce = ({ host }: SimulatedRequest) =>
    host === "api.archives-ouvertes.fr" && ++answers === 2
      ? { ...text("slow down", 403), headers: { "retry-after": "20" } }
      : text("no", 404);
  const { run, virtual, settled } = await virtualRun(t, worksOf(numbered(3, at => `10.5555/x.${at}`)), throttledOnce, {
    workers: 1,
    resolvers: RESOLVERS.filter(({ name }) => name === "hal"),
  });
  assert.deepEqual([...run.pipeline.switchedOff], []);
  assert.equal(virtual.sent.length, 4);
  assert.deepEqual(new Set([...settled.values()].map(({ reason }) => reason)), new Set(["unknown-work"]));
});

test("a service that has answered is switched off only after three refusals in a row: a firewall may refuse one query", async t => {
  const sentTo = async (name: string, isRefused: (at: number, isList: boolean) => boolean) => {
    let at = 0;
    const answer = ({ path }: SimulatedRequest) =>
      isRefused(at++, path === "/works") ? text("forbidden", 403) : text("no", path === "/works" ? 400 : 404);
    const made = await virtualRun(t, worksOf(numbered(10, work => `10.5555/x.${work}`)), answer, {
      ...{ workers: 1, resolvers: RESOLVERS.filter(resolver => resolver.name === name) },
    });
    const refused = [...made.settled.values()].filter(({ reason }) => reason === "refused").length;
    return [made.virtual.sent.length, refused, made.run.pipeline.switchedOff.size];
  };
  assert.deepEqual(await sentTo("hal", at => at === 0), [1, 10, 1]);
  assert.deepEqual(await sentTo("hal", at => at === 2 || at === 3 || at === 5), [10, 3, 0]);
  assert.deepEqual(await sentTo("hal", at => at >= 4), [7, 6, 1]);
  // The works of a list are asked about one by one, unless the service has never answered.
  assert.deepEqual(await sentTo("openalex", (_, isList) => isList), [1, 10, 1]);
});

test("a batch answers about many works at once, and a request that fails for one work is repeated work by work", async t => {
  const dois = numbered(120, at => `10.5555/open.${at}`);
  const whole = await virtualRun(t, worksOf(dois), openCopies, {
    resolvers: RESOLVERS.filter(({ name }) => name === "openalex"),
  });
  assert.equal(whole.virtual.sent.filter(({ host }) => host === "api.openalex.org").length, 3);
  assert.equal([...whole.settled.values()].filter(({ reason }) => reason === "ok").length, 120);

  const single = (request: SimulatedRequest) => {
    if (request.host !== "api.openalex.org") return openCopies(request);
    if (request.path === "/works") return text("one of the DOIs is invalid", 400);
    const doi = decodeURIComponent(request.path.replace("/works/doi:", ""));
    const open_access = { is_oa: true, oa_url: `https://files1.example/${encodeURIComponent(doi)}.pdf` };
    return json({ id: "https://openalex.org/W1", doi, open_access });
  };
  const alone = await virtualRun(t, worksOf(dois.slice(0, 5)), single, {
    resolvers: RESOLVERS.filter(({ name }) => name === "openalex"),
  });
  const paths = alone.virtual.sent.filter(({ host }) => host === "api.openalex.org").map(({ path }) => path);
  assert.equal(paths.length, 6);
});

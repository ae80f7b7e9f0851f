import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { complete, databaseOf, indexAt, pdf, runFor, workCalled } from "../../test/harvest/kit.ts";
import { hubFor, serve, type TestServer, until } from "../../test/http/kit.ts";
import { SteppedTime } from "../../test/http/stepped-time.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { workOf } from "./identifiers/identifiers.ts";
import { LeaseLostError } from "./manifest/lease-lost-error.ts";
import { landingPage } from "./resolvers/landing-page.ts";
import type { Resolver } from "./resolvers/resolver.ts";
import type { Work } from "./work.ts";

const names = (count: number) => Array.from({ length: count }, (_, index) => `w${index}`);
const QUICK_RESET = { defaults: { fail_max: 3, reset_timeout_s: 1 }, advanced: { rolling_window: { enabled: false } } };

test("works of a host with a short outage are done after it, without requests during it", async t => {
  let isDown = true;
  let requests = 0;
  const server = await serve(t, (request, response) => {
    const name = request.url?.split("/").at(-1) ?? "";
    if (request.url?.startsWith("/index/")) {
      response.end(JSON.stringify([{ url: `http://localhost:${server.port}/files/${name}`, kind: "pdf" }]));
      return;
    }
    requests += 1;
    if (requests === 5) isDown = false;
    if (isDown) response.writeHead(503).end();
    else response.end(pdf(name));
  });
  const made = await runFor(t, temporaryFolder("harvest"), {
    hub: await hubFor(t, { breakers: QUICK_RESET, retry: false }),
    resolvers: [indexAt(server.origin)],
    workers: 2,
  });
  await complete(made, names(20).map(workCalled));
  assert.deepEqual(new Set(made.settled.values()), new Set(["ok"]));
  assert.equal(made.settled.size, 20);
  assert.ok(requests <= 20 + 6, `${requests} requests for 20 files`);
});

test("works of a host that stays down fail with their reason and delay no other work", async t => {
  const server = await serve(t, (request, response) => {
    const name = request.url?.split("/").at(-1) ?? "";
    const host = name === "w0" || name === "w1" ? "localhost" : "127.0.0.1";
    if (request.url?.startsWith("/index/")) {
      response.end(JSON.stringify([{ url: `http://${host}:${server.port}/files/${name}`, kind: "pdf" }]));
    } else if (request.headers.host?.startsWith("localhost")) response.destroy();
    else response.end(pdf(name));
  });
  const made = await runFor(t, temporaryFolder("harvest"), {
    hub: await hubFor(t, {
      breakers: { ...QUICK_RESET, defaults: { fail_max: 2, reset_timeout_s: 600 } },
      retry: false,
    }),
    resolvers: [indexAt(server.origin)],
    maxBreakerWaitMs: 2000,
  });
  await complete(made, names(30).map(workCalled));
  const failed = [...made.settled].filter(([, reason]) => reason !== "ok");
  assert.deepEqual(failed.sort(), [
    ["doi:10.5555/w0", "breaker-open"],
    ["doi:10.5555/w1", "breaker-open"],
  ]);
});

test("no request is sent during Retry-After, and works of other hosts continue", async t => {
  const time = new SteppedTime();
  const arrivals: string[] = [];
  let hasAsked = false;
  const server = await serve(t, (request, response) => {
    const name = request.url?.split("/").at(-1) ?? "";
    const host = Number(name.slice(1)) % 2 === 0 ? "localhost" : "127.0.0.1";
    if (request.url?.startsWith("/index/")) {
      response.end(JSON.stringify([{ url: `http://${host}:${server.port}/files/${name}`, kind: "pdf" }]));
      return;
    }
    arrivals.push(host);
    if (host === "localhost" && !hasAsked) {
      hasAsked = true;
      response.setHeader("retry-after", "600").writeHead(429).end();
    } else response.end(pdf(name));
    // Retry-After ends after all works of the other host have been requested.
    if (arrivals.length === 6) time.step(601_000);
  });
  const made = await runFor(t, temporaryFolder("harvest"), {
    hub: await hubFor(t, { breakers: QUICK_RESET, retry: false, time }),
    resolvers: [indexAt(server.origin)],
    workers: 1,
    maxBreakerWaitMs: 3_600_000,
    time,
  });
  await complete(made, names(10).map(workCalled));
  assert.deepEqual(new Set(made.settled.values()), new Set(["ok"]));
  const others = Array(5).fill("127.0.0.1");
  assert.deepEqual(arrivals, ["localhost", ...others, ...Array(5).fill("localhost")]);
});

/** A run of three works on virtual time, whose files are on one host. */
async function waitingRun(
  t: Parameters<typeof serve>[0],
  limit: string,
  answer: (request: number, response: ServerResponse) => void,
) {
  const time = new FakeTime();
  const server = await serve(t, ({ url = "" }, response) => {
    answer(server.requests.length, response);
    if (!response.writableEnded) response.end(pdf(url));
  });
  const index = {
    ...indexAt(server.origin),
    inferred: ({ key }: Work) =>
      ({ kind: "found", candidates: [{ url: `${server.origin}/${key}`, kind: "pdf" }] }) as const,
    requestFor: () => undefined,
  };
  const rates = { rates: limit, guard_ms: 0 };
  const limits = { defaults: { metadata: rates, landing: rates, artifact: rates } };
  const hub = await hubFor(t, { time, limits, retry: false });
  const made = await runFor(t, temporaryFolder("harvest"), { hub, resolvers: [index], time, workers: 1 });
  await made.run.addWorks(names(3).map(workCalled));
  made.run.pipeline.inputEnded();
  const ended = made.run.pipeline.run();
  const isIdle = () => made.run.pipeline.inFlight === 0 && server.requests.length > 0;
  /** The requests so far, when none is in flight and all works wait. */
  const requestsAtRest = async () => {
    for (let turns = 0; turns < 20; turns = isIdle() ? turns + 1 : 0) await setImmediate();
    return server.requests.length;
  };
  return { ...made, hub, ended, requestsAtRest, time };
}

for (const [waitS, where] of [
  [20, "in memory"],
  [600, "in the manifest"],
] as const)
  test(`works that wait ${where} for the end of a cooldown go on when an operator ends it`, async t => {
    const { hub, run, ended, settled, requestsAtRest, time } = await waitingRun(
      t,
      "1000/SECOND",
      (request, response) => {
        if (request === 1) response.setHeader("retry-after", `${waitS}`).writeHead(429).end();
      },
    );
    assert.equal(await requestsAtRest(), 1);
    assert.equal(run.pipeline.openWorks, waitS === 20 ? 3 : 1);
    hub.breakers.close("127.0.0.1");
    // The work whose request was refused by the server pauses before it is tried again.
    await until(() => settled.size === 2);
    await time.advance(1000);
    await ended;
    assert.deepEqual([...settled.values()], ["ok", "ok", "ok"]);
  });

test("works that wait for a spent quota go on when a reload raises the limit", async t => {
  const { hub, ended, settled, requestsAtRest } = await waitingRun(t, "1/600SECOND", () => undefined);
  assert.equal(await requestsAtRest(), 1);
  const rates = { rates: "1000/SECOND", guard_ms: 0 };
  await hub.reload({ ratelimits: { extends: "none", defaults: { artifact: rates } }, breakers: { extends: "none" } });
  await ended;
  assert.deepEqual([...settled.values()], ["ok", "ok", "ok"]);
});

test("a resolver that is down is deferred, and candidates of another are used", async t => {
  const server = await serve(t, (request, response) => {
    const [, room, , name = ""] = (request.url ?? "").split("/");
    if (room === "broken") response.writeHead(500).end();
    else if (room === "index")
      response.end(JSON.stringify([{ url: `http://${request.headers.host}/files/x/${name}`, kind: "pdf" }]));
    else response.end(pdf(name));
  });
  const made = await runFor(t, temporaryFolder("harvest"), {
    hub: await hubFor(t, {
      breakers: { defaults: { fail_max: 1000 }, resolvers: { broken: { fail_max: 2, reset_timeout_s: 600 } } },
      retry: false,
    }),
    resolvers: [indexAt(server.origin, "broken"), indexAt(server.origin)],
    workers: 1,
  });
  await complete(made, names(12).map(workCalled));
  assert.deepEqual(new Set(made.settled.values()), new Set(["ok"]));
  assert.equal(server.requests.filter(({ url }) => url?.startsWith("/broken/")).length, 2);
});

test("a full manifest ends the run with its error and releases the lock", async t => {
  const server = await serve(t, (_, response) => response.writeHead(404).end());
  const folder = temporaryFolder("harvest");
  const { run } = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)], workers: 2 });
  await run.addWorks(Array.from({ length: 300 }, (_, index) => workCalled(`w${index}`)));
  run.pipeline.inputEnded();
  const db = databaseOf(run.manifest);
  db.exec(`PRAGMA max_page_count = ${db.prepare("PRAGMA page_count").get()?.["page_count"]}`);
  db.exec("CREATE TEMP TRIGGER full BEFORE UPDATE ON runs BEGIN SELECT raise(ABORT, 'database or disk is full'); END");
  await assert.rejects(run.pipeline.run(), /full/);
  await run.close("interrupted");
  const lock = await run.manifest.tryLock();
  assert.ok(lock !== undefined);
  lock.release();
});

test("a manifest that cannot record a downloaded file ends the run with its own error, not one of the folder", async t => {
  const server = await serve(t, (request, response) => {
    const candidates = [{ url: `http://${request.headers.host}/files/a`, kind: "pdf" }];
    response.end(request.url?.startsWith("/index/") ? JSON.stringify(candidates) : pdf("a"));
  });
  const hub = await hubFor(t);
  for (const table of ["parts", "files"]) {
    const { run } = await runFor(t, temporaryFolder("harvest"), { hub, resolvers: [indexAt(server.origin)] });
    await run.addWorks([workCalled("a")]);
    run.pipeline.inputEnded();
    databaseOf(run.manifest).exec(
      `CREATE TEMP TRIGGER full BEFORE INSERT ON ${table} BEGIN SELECT raise(ABORT, 'database or disk is full'); END`,
    );
    await assert.rejects(run.pipeline.run(), { code: "ERR_SQLITE_ERROR", message: "database or disk is full" });
  }
  // Only `docstokg worker` uses this error, to join its run again.
  const lost = new LeaseLostError(1000);
  const { run } = await runFor(t, temporaryFolder("harvest"), { hub, resolvers: [indexAt(server.origin)] });
  t.mock.method(run.manifest, "finish", async () => Promise.reject(lost));
  await run.addWorks([workCalled("a")]);
  run.pipeline.inputEnded();
  await assert.rejects(run.pipeline.run(), error => error === lost);
});

test("a full manifest rejects the run even if works fail without a request", async t => {
  const folder = temporaryFolder("harvest");
  const { run } = await runFor(t, folder, { hub: await hubFor(t), resolvers: [] });
  // More works than one turn loads, so that the error occurs in a later turn.
  await run.addWorks(Array.from({ length: 2000 }, (_, index) => workCalled(`w${index}`)));
  run.pipeline.inputEnded();
  databaseOf(run.manifest).exec(
    `CREATE TEMP TRIGGER full BEFORE UPDATE ON works WHEN old.id > 500 BEGIN SELECT raise(ABORT, 'database or disk is full'); END`,
  );
  await assert.rejects(run.pipeline.run(), /full/);
});

test("a work whose host has a slow robots.txt continues when the file was read", async t => {
  const time = new FakeTime();
  const asked = Promise.withResolvers<() => void>();
  const server = await serve(t, ({ url = "" }, response) => {
    if (url === "/robots.txt") asked.resolve(() => void response.end("User-agent: *\nDisallow: /search\n"));
    else response.end(pdf(url));
  });
  const index = {
    ...indexAt(server.origin),
    inferred: () => ({ kind: "found", candidates: [{ url: `${server.origin}/a`, kind: "pdf" }] }) as const,
  };
  const { run, settled } = await runFor(t, temporaryFolder("harvest"), {
    hub: await hubFor(t, { time, crawlDelay: true, retry: false }),
    resolvers: [index],
    time,
  });
  await run.addWorks([workCalled("a")]);
  run.pipeline.inputEnded();
  const ended = run.pipeline.run();
  const answer = await asked.promise;
  await time.advance(100);
  await until(() => run.pipeline.inFlight === 0);
  answer();
  await ended;
  assert.deepEqual([...settled.values()], ["ok"]);
});

test("a second run on the same manifest is refused with a message that names it", async t => {
  const folder = temporaryFolder("harvest");
  const hub = await hubFor(t);
  await runFor(t, folder, { hub, resolvers: [] });
  await assert.rejects(runFor(t, folder, { hub, resolvers: [] }), {
    name: "ConfigError",
    message:
      /another docstokg run uses the manifest .*manifest\.sqlite; wait until it ends or choose another with --manifest/,
  });
});

test("a PDF behind a URL without .pdf is requested once, and a page that is sent instead of a file is read as it is", async t => {
  const server = await serve(t, (request, response) => {
    if (request.url === "/robots.txt") response.writeHead(404).end();
    else if (request.url === "/page")
      response
        .setHeader("content-type", "text/html")
        .end(`<html><head><meta name="citation_pdf_url" content="/linked"></head></html>`);
    else response.setHeader("content-type", "application/pdf").end(pdf(request.url ?? ""));
  });
  const hub = await hubFor(t);
  const direct = await runFor(t, temporaryFolder("harvest"), { hub, resolvers: [landingPage] });
  await complete(direct, [workOf({ url: `${server.origin}/download/17` })]);
  assert.deepEqual([...direct.settled.values()], ["ok"]);
  assert.deepEqual(pathsOf(server), ["/download/17"]);

  // An index says that the page is a PDF.
  const index = {
    ...indexAt(server.origin),
    inferred: () => ({ kind: "found", candidates: [{ url: `${server.origin}/page`, kind: "pdf" }] }) as const,
    requestFor: () => undefined,
  };
  const viaPage = await runFor(t, temporaryFolder("harvest"), {
    hub,
    resolvers: [index, landingPage],
    order: () => [index],
  });
  await complete(viaPage, [workCalled("a")]);
  assert.deepEqual([...viaPage.settled.values()], ["ok"]);
  assert.deepEqual(pathsOf(server).slice(1), ["/page", "/linked"]);
});

test("a PDF behind the URL of a page is stored whatever its type is, and a page that shows a PDF header is read", async t => {
  const types: Readonly<Record<string, string>> = {
    "/octet": "application/octet-stream",
    "/html": "text/html; charset=utf-8",
    "/download": "application/force-download",
  };
  const server = await serve(t, ({ url = "" }, response) => {
    const type = types[url];
    if (type !== undefined) response.setHeader("content-type", type);
    if (url === "/robots.txt") response.writeHead(404).end();
    else if (url === "/page") response.end(`<pre>%PDF-1.4</pre><meta name="citation_pdf_url" content="/linked">`);
    else response.end(pdf(url, 100_000));
  });
  const made = await runFor(t, temporaryFolder("harvest"), { hub: await hubFor(t), resolvers: [landingPage] });
  const paths = ["/octet", "/html", "/download", "/untyped", "/page"];
  await complete(
    made,
    paths.map(path => workOf({ url: `${server.origin}${path}` })),
  );
  assert.deepEqual([...made.settled.values()], Array(5).fill("ok"));
  // The rest of the first response is not read.
  assert.deepEqual(
    [...new Set(pathsOf(server).toSorted())],
    ["/download", "/html", "/linked", "/octet", "/page", "/untyped"],
  );
  const asked = made.attempts.filter(({ step }) => step === "ask");
  assert.ok(asked.every(({ bytes = 0 }) => bytes < 100_000));
});

test("two works whose pages lead to one file, one after the other, share it, and its second body is dropped", async t => {
  const { origin } = await serve(t, ({ url = "" }, response) => {
    if (url === "/robots.txt") response.writeHead(404).end();
    else if (url.startsWith("/page")) response.writeHead(302, { location: "/file" }).end();
    else response.setHeader("content-type", "application/pdf").end(pdf("a"));
  });
  const made = await runFor(t, temporaryFolder("harvest"), {
    ...{ hub: await hubFor(t, { cache: false }), resolvers: [landingPage], workers: 1 },
  });
  await complete(
    made,
    ["page1", "page2", "page3"].map(name => workOf({ url: `${origin}/${name}` })),
  );
  assert.deepEqual([...made.settled.values()], ["ok", "duplicate", "duplicate"]);
  // The error of a body that is dropped would be an uncaught exception of this test.
  await setImmediate();
});

test("a page with a CAPTCHA in a form that is sent instead of a file is read if it links to the file", async t => {
  const link = `<meta name="citation_pdf_url" content="/linked">`;
  const captcha = `<form><div class="g-recaptcha"></div></form>`;
  const server = await serve(t, ({ url = "" }, response) => {
    if (url.startsWith("/index"))
      response.end(JSON.stringify([{ url: `${server.origin}/page${url.at(-1)}`, kind: "pdf" }]));
    else if (url === "/pagea") response.end(`<html><head>${link}</head><body>${captcha}</body></html>`);
    else if (url === "/pageb") response.end(`<html><body>${captcha}</body></html>`);
    else if (url === "/linked") response.end(pdf("a"));
    else response.writeHead(404).end();
  });
  const index = indexAt(server.origin);
  const made = await runFor(t, temporaryFolder("harvest"), {
    ...{ hub: await hubFor(t), resolvers: [index, landingPage], order: () => [index] },
  });
  await complete(made, [workCalled("a"), workCalled("b")]);
  assert.deepEqual([...made.settled].toSorted(), [
    ["doi:10.5555/a", "ok"],
    ["doi:10.5555/b", "challenge-page"],
  ]);
});

test("a page that is a file of a format that is not wanted is not stored", async t => {
  const feed = "<?xml version='1.0'?><rss><channel></channel></rss>";
  const { origin } = await serve(t, ({ url = "" }, response) => {
    if (url === "/feed") response.setHeader("content-type", "text/xml").end(feed);
    else if (url === "/paper") response.setHeader("content-type", "application/pdf").end(pdf("a"));
    else response.writeHead(404).end();
  });
  for (const [page, formats, reason] of [
    ["feed", ["pdf"], "not-a-pdf"],
    ["feed", ["html", "pdf"], "not-html"],
    ["paper", ["xml"], "not-xml"],
    ["paper", ["xml", "pdf"], "ok"],
  ] as const) {
    const url = `${origin}/${page}`;
    const made = await runFor(t, temporaryFolder("harvest"), {
      ...{ hub: await hubFor(t), resolvers: [landingPage], formats },
    });
    await complete(made, [{ key: `url:${url}`, ids: { url } }]);
    assert.deepEqual([...made.settled.values()], [reason]);
  }
});

test("a URL that is gone is requested once, whichever resolvers name it", async t => {
  const server = await serve(t, (_, response) => response.writeHead(404).end("no"));
  for (const path of ["/gone.pdf", "/gone"]) {
    const made = await runFor(t, temporaryFolder("harvest"), { hub: await hubFor(t), resolvers: [landingPage] });
    await complete(made, [workOf({ url: `${server.origin}${path}` })]);
    assert.deepEqual([...made.settled.values()].length, 1);
    assert.equal(pathsOf(server).filter(each => each === path).length, 1, path);
  }
});

test("an archived 429 is the answer of the archive and is not retried", async t => {
  const headers = { "memento-datetime": "Thu, 01 Jan 2015 00:00:00 GMT" };
  const server = await serve(t, (request, response) => {
    if (request.url?.startsWith("/index"))
      response.end(JSON.stringify([{ url: `${server.origin}/web/2015id_/x`, kind: "pdf" }]));
    else response.writeHead(429, headers).end("Too Many Requests");
  });
  const made = await runFor(t, temporaryFolder("harvest"), {
    hub: await hubFor(t),
    resolvers: [indexAt(server.origin)],
  });
  await complete(made, [workCalled("a")]);
  assert.deepEqual([...made.settled.values()], ["http-status"]);
  assert.equal(server.requests.length, 2);
});

test("title and year are kept for a work without a file, with their source", async t => {
  const server = await serve(t, (_, response) =>
    response.end(JSON.stringify({ kind: "none", reason: "not-open", metadata: { title: "A title", year: 2011 } })),
  );
  const { run } = await runFor(t, temporaryFolder("harvest"), {
    hub: await hubFor(t),
    resolvers: [indexAt(server.origin)],
  });
  await run.addWorks([workCalled("a")]);
  run.pipeline.inputEnded();
  await run.pipeline.run();
  const row = databaseOf(run.manifest).prepare("SELECT title, year, metadata FROM works").get();
  assert.deepEqual(
    { ...row, metadata: JSON.parse(String(row?.["metadata"])) },
    {
      title: "A title",
      year: 2011,
      metadata: { title: "A title", year: 2011, sources: { title: "index", year: "index" } },
    },
  );
});

test("two identifiers of one work become one work, which keeps both", async t => {
  const server = await serve(t, (request, response) => {
    if (request.url?.startsWith("/pubmed/"))
      response.end(JSON.stringify({ kind: "none", reason: "no-copy", ids: { doi: "10.5555/a" } }));
    else if (request.url?.startsWith("/index/"))
      response.end(JSON.stringify([{ url: `${server.origin}/files/a`, kind: "pdf" }]));
    else response.end(pdf("a"));
  });
  const pubmed: Resolver = {
    ...indexAt(server.origin, "pubmed"),
    requestFor: ({ ids }) =>
      ids.pmid === undefined ? undefined : { url: `${server.origin}/pubmed/${ids.pmid}`, role: "metadata" },
  };
  const resolvers = [pubmed, indexAt(server.origin)];
  const { run, settled } = await runFor(t, temporaryFolder("harvest"), { hub: await hubFor(t), resolvers });
  await run.addWorks([workCalled("a"), workOf({ pmid: "17" })]);
  run.pipeline.inputEnded();
  await run.pipeline.run();
  assert.deepEqual(Object.fromEntries(settled), { "doi:10.5555/a": "ok", "pmid:17": "merged" });
  const rows = databaseOf(run.manifest).prepare("SELECT key, ids, message FROM works ORDER BY id").all();
  assert.deepEqual(JSON.parse(String(rows[0]?.["ids"])), { doi: "10.5555/a", pmid: "17" });
  assert.equal(rows[1]?.["message"], "the same work as doi:10.5555/a");
  assert.equal(server.requests.filter(({ url }) => url?.startsWith("/files")).length, 1);
  // Both names lead to the same work in a later list.
  assert.deepEqual(await run.addWorks([workOf({ pmid: "17" }), workOf({ doi: "10.5555/a" })]), {
    pending: 0,
    present: 0,
    failed: 0,
    failedIds: [],
  });
});

for (const { title, isEarlier, hasEnded } of [
  { title: "has failed in the same run", isEarlier: false, hasEnded: true },
  { title: "has failed in an earlier run", isEarlier: true, hasEnded: true },
  { title: "was left by an interrupted run", isEarlier: true, hasEnded: false },
])
  test(`a work with a copy is done although the same work under another identifier ${title}`, async t => {
    const server = await serve(t, (request, response) => {
      const candidates = [{ url: `${server.origin}/files/a`, kind: "pdf" }];
      if (request.url?.startsWith("/index/"))
        response.end(JSON.stringify({ kind: "found", ids: { pmid: "1" }, candidates }));
      else response.end(pdf("a"));
    });
    const folder = temporaryFolder("harvest");
    const options = { hub: await hubFor(t, { retry: false }), resolvers: [indexAt(server.origin)] };
    // The index needs a DOI.
    const other = workOf({ pmid: "1" });
    if (isEarlier) {
      const first = await runFor(t, folder, options);
      if (hasEnded) await complete(first, [other]);
      else {
        await first.run.addWorks([other]);
        await first.run.close("interrupted");
      }
    }
    const { run, settled } = await runFor(t, folder, options);
    await run.addWorks(isEarlier ? [workCalled("a")] : [other, workCalled("a")]);
    run.pipeline.inputEnded();
    await run.pipeline.run();
    assert.equal(settled.get("doi:10.5555/a"), "ok");
    const counts = { total: 1, done: 1, failed: 0, pending: 0, merged: 1 };
    assert.deepEqual((await run.manifest.reports.report()).works, counts);
    assert.equal((await run.manifest.reports.storedFiles()).length, 1);
  });

const pathsOf = ({ requests }: TestServer) => requests.map(({ url }) => url).filter(url => url !== "/robots.txt");

test("a run whose manifest cannot be closed reports the error and releases the lock", async t => {
  const folder = temporaryFolder("harvest");
  const options = { hub: await hubFor(t, { retry: false }), resolvers: [landingPage] };
  const { run } = await runFor(t, folder, options);
  const database = databaseOf(run.manifest);
  // SQLite itself reports no such error on demand.
  t.mock.method(database, "close", () => {
    throw Object.assign(new Error("disk I/O error"), { errcode: 10, errstr: "disk I/O error" });
  });
  await assert.rejects(run.close("interrupted"), {
    name: "DownloadError",
    message: /manifest\.sqlite: disk I\/O error/,
  });
  t.mock.restoreAll();
  database.close();
  const next = await runFor(t, folder, options);
  await next.run.close("ended");
});

test("a run whose end cannot be recorded reports that error also if its manifest cannot be closed", async t => {
  const folder = temporaryFolder("harvest");
  const options = { hub: await hubFor(t, { retry: false }), resolvers: [landingPage] };
  const { run } = await runFor(t, folder, options);
  const database = databaseOf(run.manifest);
  database.exec("DROP TABLE runs");
  t.mock.method(database, "close", () => {
    throw new Error("the manifest cannot be closed");
  });
  await assert.rejects(run.close("ended"), { name: "DownloadError", message: /no such table: runs/ });
  assert.equal(await run.manifest.isInUse(), false);
  t.mock.restoreAll();
  database.close();
});

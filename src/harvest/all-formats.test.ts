import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { complete, databaseOf, eventually, pdf, runFor, workCalled } from "../../test/harvest/kit.ts";
import { hubFor, serve } from "../../test/http/kit.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import type { Candidate, Resolver } from "./resolvers/resolver.ts";

const XML = "<?xml version='1.0'?><article><body>text</body></article>";
const ZIP = Buffer.from(`PK\x03\x04${"x".repeat(40)}PK\x05\x06${"\0".repeat(18)}`, "latin1");
const SOURCE = gzipSync("\\documentclass{article}");

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const FILES: Readonly<Record<string, Buffer | string>> = {
  "a.pdf": pdf("a"),
  "a.xml": XML,
  source: SOURCE,
  "one.zip": ZIP,
  "two.csv": "a,b\n1,2\n",
};

/** A server with files, and two resolvers: `index` has the article, `repository` the rest. */
async function library(t: TestContext, handlers: Readonly<Record<string, Handler>> = {}) {
  const server = await serve(t, (request, response) => {
    const name = request.url?.split("/").at(-1) ?? "";
    const file = FILES[name];
    const handler = handlers[name];
    if (request.url?.startsWith("/ask/")) response.end("{}");
    else if (handler !== undefined) handler(request, response);
    else if (file === undefined) response.writeHead(404).end("not here");
    else response.setHeader("etag", `"${name}"`).end(file);
  });
  const url = (name: string) => `${server.origin}/files/${name}`;
  const resolver = (name: string, offers: Resolver["offers"], candidates: readonly Candidate[]): Resolver => ({
    ...{ name, needs: [], ...(offers === undefined ? {} : { offers }) },
    requestFor: () => ({ url: `${server.origin}/ask/${name}`, role: "metadata" }),
    parse: () => ({ kind: "found", candidates }),
  });
  const supplement = (name: string): Candidate => ({ url: url(name), kind: "file", role: "supplement" });
  const index = resolver("index", undefined, [{ url: url("a.pdf"), kind: "pdf" }]);
  const other = resolver("other", undefined, [{ url: url("other.pdf"), kind: "pdf" }]);
  const repository = resolver(
    "repository",
    ["xml", "source", "supplement"],
    [
      { url: url("second.pdf"), kind: "pdf" },
      { url: url("a.xml"), kind: "xml" },
      { url: url("source"), kind: "file", role: "source" },
      ...["one.zip", "two.csv", "gone.zip"].map(supplement),
    ],
  );
  const asked = () => server.requests.filter(({ url: path }) => path?.startsWith("/ask/")).map(({ url: path }) => path);
  const fetched = () => server.requests.flatMap(({ url: path }) => /^\/files\/(.+)$/.exec(path ?? "")?.[1] ?? []);
  return { resolvers: [index, other, repository], asked, fetched };
}

const stored = (folder: string) => readdirSync(folder).filter(name => name.startsWith("doi_"));

test("with all formats a work has its article, XML, source and supplements, each with its role and hash", async t => {
  const { resolvers, asked, fetched } = await library(t);
  const folder = temporaryFolder("harvest");
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers, formats: "all" });
  await made.run.addWorks([workCalled("a")]);
  made.run.pipeline.inputEnded();
  await made.run.pipeline.run();
  assert.deepEqual([...made.settled], [["doi:10.5555/a", "ok"]]);
  const record = await made.run.manifest.reports.workRecord(1);
  assert.deepEqual(
    record.files.map(({ path, role, mediaType }) => [path, role, mediaType]),
    [
      ["doi_10.5555_a.pdf", "article", "application/pdf"],
      ["doi_10.5555_a.xml", "article", "application/xml"],
      ["doi_10.5555_a.source.gz", "source", "application/gzip"],
      ["doi_10.5555_a.supplement.csv", "supplement", "text/csv"],
      ["doi_10.5555_a.supplement.zip", "supplement", "application/zip"],
    ],
  );
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_a.source.gz")), SOURCE);
  assert.match(
    String(databaseOf(made.run.manifest).prepare("SELECT message FROM works").get()?.["message"]),
    /^1 further file could not be downloaded: supplement: status 404/,
  );
  // Only the resolver that offers more than a PDF is asked after the article, and no second PDF is requested.
  assert.deepEqual(asked(), ["/ask/index", "/ask/repository"]);
  assert.deepEqual(fetched().toSorted(), ["a.pdf", "a.xml", "gone.zip", "one.zip", "source", "two.csv"]);
});

test("without all formats the first valid file is enough", async t => {
  const { resolvers, fetched } = await library(t);
  const folder = temporaryFolder("harvest");
  await complete(await runFor(t, folder, { hub: await hubFor(t), resolvers }), [workCalled("a")]);
  assert.deepEqual(stored(folder), ["doi_10.5555_a.pdf"]);
  assert.deepEqual(fetched(), ["a.pdf"]);
});

test("a supplement whose URL has no file name gets the extension of its name", async t => {
  const server = await serve(t, ({ url }, response) => {
    if (url === "/a.pdf") response.end(pdf("a"));
    else response.end(url === "/2" ? "a,b\n" : "{}");
  });
  const index: Resolver = {
    ...{ name: "index", needs: [], requestFor: () => ({ url: `${server.origin}/ask`, role: "metadata" }) },
    parse: () => ({
      kind: "found",
      candidates: [
        { url: `${server.origin}/a.pdf`, kind: "pdf" },
        { url: `${server.origin}/2`, kind: "file", role: "supplement", name: "table.csv" },
      ],
    }),
  };
  const folder = temporaryFolder("harvest");
  await complete(await runFor(t, folder, { hub: await hubFor(t), resolvers: [index], formats: "all" }), [
    workCalled("a"),
  ]);
  assert.deepEqual(stored(folder), ["doi_10.5555_a.pdf", "doi_10.5555_a.supplement.csv"]);
});

test("supplements are not downloaded for a work without an article, which fails with its reason", async t => {
  const notFound: Handler = (_, response) => response.writeHead(404).end();
  const { resolvers, fetched } = await library(t, { "a.pdf": notFound, "a.xml": notFound });
  const folder = temporaryFolder("harvest");
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers, formats: "all" });
  await complete(made, [workCalled("a")]);
  assert.deepEqual([...made.settled.values()], ["http-status"]);
  assert.deepEqual(stored(folder), []);
  assert.deepEqual(fetched().toSorted(), ["a.pdf", "a.xml", "other.pdf", "second.pdf"]);
});

test("a run that was stopped between two files continues with the files that are left", async t => {
  const held: ServerResponse[] = [];
  let isHeld = true;
  const { resolvers, fetched } = await library(t, {
    source: (_, response) => {
      if (isHeld) held.push(response);
      else response.end(SOURCE);
    },
  });
  const folder = temporaryFolder("harvest");
  const options = { hub: await hubFor(t), resolvers, formats: "all" } as const;
  const first = await runFor(t, folder, options);
  await first.run.addWorks([workCalled("a")]);
  first.run.pipeline.inputEnded();
  const running = first.run.pipeline.run();
  await eventually(() => held.length === 1);
  first.run.stop();
  await running;
  await first.run.close("interrupted");
  assert.equal(first.settled.size, 0);
  const before = fetched().length;
  isHeld = false;
  const second = await runFor(t, folder, options);
  await second.run.addUnfinished();
  second.run.pipeline.inputEnded();
  await second.run.pipeline.run();
  assert.deepEqual([...second.settled.values()], ["ok"]);
  assert.equal((await second.run.manifest.reports.workRecord(1)).files.length, 5);
  const again = fetched().slice(before);
  assert.ok(again.includes("source") && !again.includes("a.pdf"), again.join());
});

test("an error page is no supplement, and the PDF of a work without source is no source", async t => {
  const html: Handler = (_, response) => response.end("<!doctype html><html><title>Sign in</title></html>");
  const { resolvers } = await library(t, {
    "one.zip": html,
    "two.csv": (_, response) => response.end(ZIP.subarray(0, 30)),
    source: (_, response) => response.end(pdf("another")),
  });
  const folder = temporaryFolder("harvest");
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers, formats: "all" });
  await complete(made, [workCalled("a")]);
  assert.deepEqual(stored(folder), ["doi_10.5555_a.pdf", "doi_10.5555_a.xml"]);
  assert.deepEqual(
    made.attempts
      .filter(({ step, reason }) => step === "fetch" && reason !== "ok")
      .map(({ reason }) => reason)
      .toSorted(),
    ["html-instead", "http-status", "no-copy", "truncated"],
  );
});

test("a supplement that cannot be resumed leaves no partial file when its work is done", async t => {
  let first: ServerResponse | undefined;
  const { resolvers, fetched } = await library(t, {
    "one.zip": (_, response) => {
      if (first !== undefined) response.writeHead(403).end();
      else {
        first = response.writeHead(200, { etag: '"1"', "content-length": 2 * ZIP.length });
        first.write(ZIP);
      }
    },
  });
  const folder = temporaryFolder("harvest");
  const made = await runFor(t, folder, { hub: await hubFor(t, { retry: false }), resolvers, formats: "all" });
  const parts = () => readdirSync(join(folder, ".parts"));
  const completed = complete(made, [workCalled("a")]);
  await eventually(() => parts().some(name => statSync(join(folder, ".parts", name)).size === ZIP.length));
  first?.destroy();
  await completed;
  assert.equal(fetched().filter(name => name === "one.zip").length, 2);
  assert.deepEqual([...made.settled.values()], ["ok"]);
  assert.deepEqual(parts(), []);
});

test("a refresh replaces a supplement that has changed, and keeps the others", async t => {
  let csv = "a,b\n";
  const { resolvers } = await library(t, {
    "two.csv": (_, response) => response.end(csv),
  });
  const folder = temporaryFolder("harvest");
  const options = { hub: await hubFor(t), resolvers, formats: "all" } as const;
  await complete(await runFor(t, folder, options), [workCalled("a")]);
  csv = "a,b\n3,4\n";
  const again = await runFor(t, folder, options);
  await again.run.addWorks([workCalled("a")], { isRefresh: true });
  again.run.pipeline.inputEnded();
  await again.run.pipeline.run();
  assert.deepEqual([...again.settled.values()], ["duplicate"]);
  const { files } = await again.run.manifest.reports.workRecord(1);
  assert.deepEqual(
    files.map(({ path }) => path),
    [
      "doi_10.5555_a.pdf",
      "doi_10.5555_a.xml",
      "doi_10.5555_a.source.gz",
      "doi_10.5555_a.supplement.zip",
      "doi_10.5555_a.supplement~2.csv",
    ],
  );
  assert.equal(readFileSync(join(folder, "doi_10.5555_a.supplement~2.csv"), "utf8"), csv);
});

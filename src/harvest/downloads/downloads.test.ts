import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import {
  complete,
  databaseOf,
  eventually,
  indexAt,
  pdf,
  runFor,
  sha256,
  workCalled,
} from "../../../test/harvest/kit.ts";
import { hubFor, serve, type TestServer } from "../../../test/http/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { systemTime } from "../../time/system-time.ts";
import { openManifest } from "../manifest/manifest.ts";
import { landingPage } from "../resolvers/landing-page.ts";
import type { Candidate } from "../resolvers/resolver.ts";

type FileHandlers = Readonly<
  Record<string, (request: IncomingMessage, response: ServerResponse, visit: number) => void>
>;

/** A server with an index, which names `/files/<name>` for each work, and with the files. */
function publisher(
  t: TestContext,
  handlers: FileHandlers,
  candidates: (name: string, origin: string) => readonly Candidate[] = only,
) {
  const visits = new Map<string, number>();
  return serve(t, (request, response) => {
    const [, section = "", ...rest] = (request.url ?? "").split("/");
    const name = rest.at(-1) ?? "";
    if (section === "index") {
      const origin = `http://${request.headers.host}`;
      response.setHeader("content-type", "application/json").end(JSON.stringify(candidates(name, origin)));
      return;
    }
    const visit = (visits.get(name) ?? 0) + 1;
    visits.set(name, visit);
    const handler = handlers[name];
    if (handler === undefined) response.writeHead(404).end("not here");
    else handler(request, response, visit);
  });
}

function only(name: string, origin: string): readonly Candidate[] {
  return [{ url: `${origin}/files/${name}`, kind: "pdf" }];
}

const send = (body: string | Buffer) => (_: IncomingMessage, response: ServerResponse) => response.end(body);

function partBytes(folder: string): number {
  const parts = join(folder, ".parts");
  return readdirSync(parts).reduce((sum, name) => sum + statSync(join(parts, name)).size, 0);
}

const files = (folder: string) =>
  readdirSync(folder)
    .filter(name => /\.(?:pdf|xml|html)$/.test(name))
    .sort();
const fetches = ({ requests }: TestServer) => requests.filter(({ url }) => url?.startsWith("/files/"));

test("a valid file is stored under the name of the work, with its hash in the manifest", async t => {
  const server = await publisher(t, { a: send(pdf("a")) });
  const folder = temporaryFolder("harvest");
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  await made.run.addWorks([workCalled("a")]);
  made.run.pipeline.inputEnded();
  await made.run.pipeline.run();
  assert.deepEqual(files(folder), ["doi_10.5555_a.pdf"]);
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_a.pdf")), pdf("a"));
  assert.equal((await made.run.manifest.files.file(sha256(pdf("a"))))?.path, "doi_10.5555_a.pdf");
  assert.deepEqual(readdirSync(join(folder, ".parts")), []);
  const { works, files: count } = await made.run.manifest.reports.report();
  assert.deepEqual(works, { total: 1, done: 1, failed: 0, pending: 0, merged: 0 });
  assert.deepEqual(count, { count: 1, bytes: 400 });
});

test("a response that is not the wanted file fails with its reason and leaves no file", async t => {
  const html = "<!doctype html><html><title>Sign in</title></html>";
  const challenge = "<!doctype html><html><title>Just a moment...</title></html>";
  const server = await publisher(t, {
    page: send(html),
    challenge: send(challenge),
    "challenge-by-field": (_, response) => response.setHeader("x-amzn-waf-action", "challenge").writeHead(202).end(),
    text: send("just words, many of them"),
    empty: send(""),
    cut: send(pdf("cut").subarray(0, 300)),
    large: send(pdf("large", 5000)),
    "large-unsaid": (_, response) => response.write(pdf("x", 3000), () => response.end(pdf("y", 3000))),
    gone: (_, response) => response.writeHead(410).end(html),
  });
  const folder = temporaryFolder("harvest");
  const names = ["page", "challenge", "challenge-by-field", "text", "empty", "cut", "large", "large-unsaid", "gone"];
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)], maxBytes: 4000 });
  await complete(made, names.map(workCalled));
  assert.deepEqual(Object.fromEntries(made.settled), {
    "doi:10.5555/page": "html-instead",
    "doi:10.5555/challenge": "challenge-page",
    "doi:10.5555/challenge-by-field": "challenge-page",
    "doi:10.5555/text": "not-a-pdf",
    "doi:10.5555/empty": "truncated",
    "doi:10.5555/cut": "truncated",
    "doi:10.5555/large": "too-large",
    "doi:10.5555/large-unsaid": "too-large",
    "doi:10.5555/gone": "http-status",
  });
  assert.deepEqual(files(folder), []);
  assert.deepEqual(readdirSync(join(folder, ".parts")), []);
  assert.equal(fetches(server).length, names.length);
});

test("a file with another checksum than published is rejected, and the next candidate is tried", async t => {
  const good = pdf("good");
  const server = await publisher(t, { a: send(good), wrong: send(pdf("wrong")) }, (_, origin) => [
    { url: `${origin}/files/wrong`, kind: "pdf", checksum: { algorithm: "sha256", hex: sha256(good) } },
    { url: `${origin}/files/a`, kind: "pdf", checksum: { algorithm: "sha256", hex: sha256(good) } },
  ]);
  const made = await runFor(t, temporaryFolder("harvest"), {
    hub: await hubFor(t),
    resolvers: [indexAt(server.origin)],
  });
  await complete(made, [workCalled("a")]);
  assert.deepEqual(
    made.attempts.map(({ step, reason }) => `${step} ${reason}`),
    ["ask found", "fetch checksum-mismatch", "fetch ok"],
  );
});

test("an interrupted download is resumed if its validator is strong", async t => {
  const [strong, weak] = [pdf("strong", 3000), pdf("weak", 3000)];
  const held: ServerResponse[] = [];
  const server = await publisher(t, {
    strong: (request, response, visit) => {
      response.setHeader("etag", '"v1"').setHeader("accept-ranges", "bytes");
      if (visit === 1) {
        response.setHeader("content-length", strong.length).write(strong.subarray(0, 1000));
        held.push(response);
        return;
      }
      const [, from = "0"] = /^bytes=(\d+)-$/.exec(request.headers.range ?? "") ?? [];
      response.setHeader("content-range", `bytes ${from}-${strong.length - 1}/${strong.length}`);
      response.writeHead(206).end(strong.subarray(Number(from)));
    },
    weak: (_, response, visit) => {
      response.setHeader("etag", 'W/"v1"').setHeader("content-length", weak.length);
      if (visit > 1) response.end(weak);
      else held.push(response.writeHead(200)) && response.write(weak.subarray(0, 1000));
    },
  });
  const folder = temporaryFolder("harvest");
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  const completed = complete(made, [workCalled("strong"), workCalled("weak")]);
  await eventually(() => partBytes(folder) === 2000);
  for (const response of held) response.socket?.destroy();
  await completed;
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_strong.pdf")), strong);
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_weak.pdf")), weak);
  const ranges = (name: string) =>
    fetches(server)
      .filter(({ url }) => url?.endsWith(name))
      .map(({ headers }) => [headers.range, headers["if-range"]]);
  assert.deepEqual(ranges("strong"), [
    [undefined, undefined],
    ["bytes=1000-", '"v1"'],
  ]);
  assert.deepEqual(ranges("weak"), [
    [undefined, undefined],
    [undefined, undefined],
  ]);
});

test("a file behind the URL of a page that is interrupted is resumed as a file", async t => {
  const bytes = pdf("page", 3000);
  let first: ServerResponse | undefined;
  const server = await serve(t, (request, response) => {
    if (request.url === "/robots.txt") {
      response.writeHead(404).end();
      return;
    }
    response.setHeader("etag", '"v1"').setHeader("accept-ranges", "bytes").setHeader("content-type", "application/pdf");
    if (first === undefined) {
      first = response.setHeader("content-length", bytes.length);
      first.write(bytes.subarray(0, 1000));
      return;
    }
    const [, from = "0"] = /^bytes=(\d+)-$/.exec(request.headers.range ?? "") ?? [];
    response.setHeader("content-range", `bytes ${from}-${bytes.length - 1}/${bytes.length}`);
    response.writeHead(206).end(bytes.subarray(Number(from)));
  });
  const folder = temporaryFolder("harvest");
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [landingPage] });
  const url = `${server.origin}/download/17`;
  const completed = complete(made, [{ key: `url:${url}`, ids: { url } }]);
  await eventually(() => partBytes(folder) === 1000);
  first?.socket?.destroy();
  await completed;
  assert.deepEqual([...made.settled.values()], ["ok"]);
  const ranges = server.requests.filter(({ url: path }) => path === "/download/17").map(({ headers }) => headers.range);
  assert.deepEqual(ranges, [undefined, "bytes=1000-"]);
});

test("two works whose pages lead to one file at the same time both get its bytes", async t => {
  const bytes = pdf("volume", 3000);
  const volumes: ServerResponse[] = [];
  let redirect: ServerResponse | undefined;
  const server = await serve(t, (request, response) => {
    if (request.url === "/robots.txt") response.writeHead(404).end();
    else if (request.url === "/a") response.writeHead(302, { location: "/volume" }).end();
    else if (request.url === "/b") redirect = response;
    else {
      // `private` and `no-store`: the hub must not give the response of one work to the other.
      const fields = { "content-type": "application/pdf", "cache-control": "private, no-store", etag: '"v1"' };
      response.writeHead(200, { ...fields, "content-length": bytes.length }).write(bytes.subarray(0, 1000));
      volumes.push(response);
    }
  });
  const folder = temporaryFolder("harvest");
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [landingPage] });
  const completed = complete(
    made,
    ["a", "b"].map(name => ({ key: `url:${name}`, ids: { url: `${server.origin}/${name}` } })),
  );
  await eventually(() => redirect !== undefined && partBytes(folder) === 1000);
  redirect?.writeHead(302, { location: "/volume" }).end();
  await eventually(() => volumes.length === 2 && partBytes(folder) === 2000);
  volumes[0]?.end(bytes.subarray(1000));
  await eventually(() => files(folder).length === 1);
  assert.deepEqual(
    files(folder).map(name => readFileSync(join(folder, name))),
    [bytes],
  );
  volumes[1]?.end(bytes.subarray(1000));
  await completed;
  assert.deepEqual([...made.settled.values()].sort(), ["duplicate", "ok"]);
  assert.deepEqual(
    files(folder).map(name => readFileSync(join(folder, name))),
    [bytes],
  );
  assert.deepEqual(readdirSync(join(folder, ".parts")), []);
});

test("a work that ends leaves the partial file alone that another work has of the same URL", async t => {
  const bytes = pdf("volume", 3000);
  const held = new Map<string, ServerResponse>();
  const server = await publisher(
    t,
    {
      volume: (_, response, visit) => {
        response.writeHead(200, { etag: '"v1"', "content-length": bytes.length }).write(bytes.subarray(0, 1000));
        held.set(`volume ${visit}`, response);
      },
      other: (_, response) => held.set("other", response),
    },
    (name, origin) =>
      (name === "a" ? ["volume", "other"] : ["volume"]).map(file => ({ url: `${origin}/files/${file}`, kind: "pdf" })),
  );
  const folder = temporaryFolder("harvest");
  const made = await runFor(t, folder, { hub: await hubFor(t, { retry: false }), resolvers: [indexAt(server.origin)] });
  await made.run.addWorks([workCalled("a")]);
  const ended = made.run.pipeline.run();
  await eventually(() => held.has("volume 1") && partBytes(folder) === 1000);
  held.get("volume 1")?.socket?.destroy();
  // The first work continues with its other candidate, and keeps its part of the volume meanwhile.
  await eventually(() => held.has("other"));
  await made.run.addWorks([workCalled("b")]);
  made.run.pipeline.inputEnded();
  await eventually(() => held.has("volume 2") && partBytes(folder) === 2000);
  held.get("other")?.end(pdf("other"));
  await eventually(() => made.settled.has("doi:10.5555/a"));
  held.get("volume 2")?.end(bytes.subarray(1000));
  await ended;
  assert.deepEqual([...made.settled.values()], ["ok", "ok"]);
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_b.pdf")), bytes);
  assert.deepEqual(readdirSync(join(folder, ".parts")), []);
});

test("a partial file whose source has changed is downloaded again, and versions are never mixed", async t => {
  const old = pdf("old", 3000);
  const fresh = pdf("fresh", 2000);
  const held: ServerResponse[] = [];
  const server = await publisher(t, {
    a: (_, response, visit) => {
      response.setHeader("etag", visit === 1 ? '"v1"' : '"v2"');
      if (visit > 1) response.end(fresh);
      else held.push(response.setHeader("content-length", old.length)) && response.write(old.subarray(0, 1000));
    },
  });
  const folder = temporaryFolder("harvest");
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  const completed = complete(made, [workCalled("a")]);
  await eventually(() => partBytes(folder) === 1000);
  for (const response of held) response.socket?.destroy();
  await completed;
  assert.equal(fetches(server)[1]?.headers.range, "bytes=1000-");
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_a.pdf")), fresh);
});

/** The first response is interrupted after 1000 bytes; `rest` handles the later requests. */
async function interrupted(t: TestContext, whole: Buffer, rest: FileHandlers[string]) {
  const held: ServerResponse[] = [];
  const server = await publisher(t, {
    a: (request, response, visit) => {
      if (visit > 1) return rest(request, response, visit);
      response.setHeader("etag", '"v1"').setHeader("content-length", whole.length).write(whole.subarray(0, 1000));
      held.push(response);
    },
  });
  const folder = temporaryFolder("harvest");
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  const completed = complete(made, [workCalled("a")]);
  await eventually(() => partBytes(folder) === 1000);
  for (const response of held) response.socket?.destroy();
  await completed;
  return { server, attempts: made.attempts, bytes: readFileSync(join(folder, "doi_10.5555_a.pdf")) };
}

test("after a 206 of another version the complete file is requested", async t => {
  const [old, fresh] = [pdf("old", 3000), pdf("fresh", 3000)];
  const { bytes, server } = await interrupted(t, old, (request, response) => {
    response.setHeader("etag", '"v2"');
    if (request.headers.range === undefined) response.end(fresh);
    else response.writeHead(206, { "content-range": "bytes 1000-2999/3000" }).end(fresh.subarray(1000));
  });
  assert.deepEqual(bytes, fresh);
  assert.deepEqual(
    fetches(server).map(({ headers }) => headers.range),
    [undefined, "bytes=1000-", undefined],
  );
});

test("a 206 shorter than the rest is resumed again, even if the bytes so far look complete", async t => {
  // A PDF with incremental updates has one %%EOF per update.
  const whole = Buffer.concat([pdf("first", 2000), pdf("amended", 1000)]);
  const { bytes, attempts } = await interrupted(t, whole, (request, response) => {
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1]);
    const part = whole.subarray(from, from + 1000);
    response.setHeader("etag", '"v1"').setHeader("content-range", `bytes ${from}-${from + 999}/${whole.length}`);
    response.writeHead(206).end(part);
  });
  assert.deepEqual(bytes, whole);
  assert.deepEqual(
    attempts.filter(({ step }) => step === "fetch").map(({ reason, message }) => message ?? reason),
    [attempts[1]?.message, "received 2000 of 3000 bytes", "ok"],
  );
});

test("a redirect loop is recorded as an attempt", async t => {
  const server = await publisher(t, { a: (_, response) => response.writeHead(302, { location: "/files/a" }).end() });
  const made = await runFor(t, temporaryFolder("harvest"), {
    hub: await hubFor(t),
    resolvers: [indexAt(server.origin)],
  });
  await complete(made, [workCalled("a")]);
  assert.deepEqual(
    made.attempts.map(({ step, reason, status }) => [step, reason, status]),
    [
      ["ask", "found", 200],
      ["fetch", "redirects", 302],
    ],
  );
});

test("the same bytes from two URLs are one file, and the same URL is requested once", async t => {
  const same = pdf("same");
  const handlers = { a: send(same), b: send(same), shared: send(pdf("shared")) };
  const server = await publisher(t, handlers, (name, origin) => [
    { url: `${origin}/files/${name.startsWith("s") ? "shared" : name}`, kind: "pdf" },
  ]);
  const folder = temporaryFolder("harvest");
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  await complete(made, ["a", "b", "s1", "s2", "s3"].map(workCalled));
  assert.equal(files(folder).length, 2);
  assert.deepEqual([...made.settled.values()].sort(), ["duplicate", "duplicate", "duplicate", "ok", "ok"]);
  assert.equal(fetches(server).filter(({ url }) => url === "/files/shared").length, 1);
});

test("a second run skips works whose file is present and downloads missing files", async t => {
  const server = await publisher(t, { a: send(pdf("a")), b: send(pdf("b")) });
  const folder = temporaryFolder("harvest");
  const hub = await hubFor(t);
  const works = [workCalled("a"), workCalled("b")];
  await complete(await runFor(t, folder, { hub, resolvers: [indexAt(server.origin)] }), works);
  rmSync(join(folder, "doi_10.5555_b.pdf"));
  const before = fetches(server).length;
  const again = await runFor(t, folder, { hub, resolvers: [indexAt(server.origin)] });
  await complete(again, works);
  assert.deepEqual([...again.settled.keys()], ["doi:10.5555/b"]);
  assert.equal(fetches(server).length, before + 1);
  assert.deepEqual(files(folder), ["doi_10.5555_a.pdf", "doi_10.5555_b.pdf"]);
});

test("a refresh sends a conditional request and downloads a file only if it has changed", async t => {
  let body = pdf("first");
  const server = await publisher(t, {
    a: (request, response) => {
      const etag = `"${sha256(body)}"`;
      response.setHeader("etag", etag);
      if (request.headers["if-none-match"] === etag) response.writeHead(304).end();
      else response.end(body);
    },
  });
  const folder = temporaryFolder("harvest");
  const hub = await hubFor(t);
  const resolvers = [indexAt(server.origin)];
  await complete(await runFor(t, folder, { hub, resolvers }), [workCalled("a")]);
  const held = await runFor(t, folder, { hub, resolvers });
  await complete(held, [workCalled("a")], true);
  assert.equal(held.settled.get("doi:10.5555/a"), "not-modified");
  body = pdf("second");
  const changed = await runFor(t, folder, { hub, resolvers });
  await complete(changed, [workCalled("a")], true);
  assert.equal(changed.settled.get("doi:10.5555/a"), "ok");
  // The newest file has the good name. The old one is kept under a numbered one.
  assert.deepEqual(files(folder), ["doi_10.5555_a.pdf", "doi_10.5555_a~2.pdf"]);
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_a.pdf")), body);
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_a~2.pdf")), pdf("first"));
  const after = await openManifest(join(folder, "manifest.sqlite"), systemTime);
  t.after(() => after.close());
  assert.equal((await after.files.file(sha256(body)))?.path, "doi_10.5555_a.pdf");
  assert.equal((await after.files.file(sha256(pdf("first"))))?.path, "doi_10.5555_a~2.pdf");
});

test("a refreshed file gets the path of the old one also if the process dies before or after the old file is moved", async t => {
  const [first, second] = [pdf("first"), pdf("second")];
  const path = "doi_10.5555_a.pdf";
  const origin = { url: "https://x.example/a", urlHash: "0".repeat(64), resolver: "index" };
  const mediaType = "application/pdf";
  for (const isOldMoved of [false, true]) {
    const server = await publisher(t, { a: send(first) });
    const folder = temporaryFolder("harvest");
    const hub = await hubFor(t);
    const resolvers = [indexAt(server.origin)];
    await complete(await runFor(t, folder, { hub, resolvers }), [workCalled("a")]);
    const manifest = await openManifest(join(folder, "manifest.sqlite"), systemTime);
    const displaced = { sha256: sha256(first), path: "doi_10.5555_a~2.pdf" };
    const destination = { sha256: sha256(second), path, bytes: second.length, mediaType, ...origin, displaced };
    const part = { urlHash: origin.urlHash, work: 1, file: "x.part", validator: undefined, totalBytes: undefined };
    await manifest.files.savePart({ ...part, destination });
    await manifest.close();
    writeFileSync(join(folder, ".parts", "x.part"), second);
    if (isOldMoved) renameSync(join(folder, path), join(folder, displaced.path));
    const next = await runFor(t, folder, { hub, resolvers });
    assert.equal(next.run.recovered, 1);
    assert.deepEqual(readFileSync(join(folder, path)), second);
    assert.deepEqual(readFileSync(join(folder, displaced.path)), first);
    assert.equal((await next.run.manifest.files.file(sha256(first)))?.path, displaced.path);
    await next.run.close("ended");
  }
});

test("a file whose process died before it was recorded gets its metadata too", async t => {
  const server = await publisher(t, { a: send(pdf("first")) });
  const folder = temporaryFolder("harvest");
  const options = { hub: await hubFor(t), resolvers: [indexAt(server.origin)] };
  await complete(await runFor(t, folder, options), [workCalled("a")]);
  const manifest = await openManifest(join(folder, "manifest.sqlite"), systemTime);
  const bytes = pdf("second");
  const origin = { url: "https://x.example/a", urlHash: "0".repeat(64), resolver: "index" };
  const file = {
    sha256: sha256(bytes),
    path: "doi_10.5555_a~2.pdf",
    bytes: bytes.length,
    mediaType: "application/pdf",
  };
  const part = { urlHash: origin.urlHash, work: 1, file: "x.part", validator: undefined, totalBytes: undefined };
  await manifest.files.savePart({ ...part, destination: { ...file, ...origin } });
  await manifest.close();
  writeFileSync(join(folder, ".parts", "x.part"), bytes);
  const next = await runFor(t, folder, { ...options, metadata: "json" });
  assert.equal(next.run.recovered, 1);
  assert.equal(JSON.parse(readFileSync(join(folder, "doi_10.5555_a~2.json"), "utf8")).key, "doi:10.5555/a");
});

test("compressed files and responses are decoded, also if the server was not asked to compress", async t => {
  const encoders = { gzip: gzipSync, br: brotliCompressSync, deflate: deflateSync };
  const server = await serve(t, (request, response) => {
    const [, section, , name = ""] = (request.url ?? "").split("/");
    const encode = encoders[name as keyof typeof encoders];
    const origin = `http://${request.headers.host}`;
    const plain = section === "index" ? JSON.stringify([{ url: `${origin}/files/x/${name}`, kind: "pdf" }]) : pdf(name);
    response.setHeader("content-encoding", name).setHeader("etag", '"1"').end(encode(plain));
  });
  const folder = temporaryFolder("harvest");
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  await complete(made, Object.keys(encoders).map(workCalled));
  assert.deepEqual([...made.settled.values()], ["ok", "ok", "ok"]);
  for (const name of Object.keys(encoders))
    assert.deepEqual(readFileSync(join(folder, `doi_10.5555_${name}.pdf`)), pdf(name));
});

test("an interrupted compressed file is downloaded again from its beginning", async t => {
  const body = gzipSync(Buffer.concat([pdf("a", 5000), randomBytes(3000), Buffer.from("%%EOF")]));
  const ranges: (string | undefined)[] = [];
  const server = await publisher(t, {
    a: (request, response, visit) => {
      ranges.push(request.headers.range);
      response.setHeader("content-encoding", "gzip").setHeader("etag", '"1"');
      if (visit > 1) response.end(body);
      else response.write(body.subarray(0, 2000), () => response.destroy());
    },
  });
  const made = await runFor(t, temporaryFolder("harvest"), {
    hub: await hubFor(t),
    resolvers: [indexAt(server.origin)],
  });
  await complete(made, [workCalled("a")]);
  assert.equal(made.settled.get("doi:10.5555/a"), "ok");
  assert.deepEqual(ranges, [undefined, undefined]);
});

test("a file that is not in the manifest is never overwritten", async t => {
  const server = await publisher(t, { a: send(pdf("a")) });
  const folder = temporaryFolder("harvest");
  writeFileSync(join(folder, "doi_10.5555_a.pdf"), "mine");
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  await complete(made, [workCalled("a")]);
  assert.equal(readFileSync(join(folder, "doi_10.5555_a.pdf"), "utf8"), "mine");
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_a~2.pdf")), pdf("a"));
});

test("redirects are followed hop by hop, and a loop or a target that is not http(s) is a failed redirect, for files and pages", async t => {
  const hop = (to: string) => (_: IncomingMessage, response: ServerResponse) =>
    response.writeHead(302, { location: to }).end();
  const server = await publisher(t, {
    a: hop("/files/b"),
    b: hop("c"),
    c: send(pdf("c")),
    round: hop("/files/round"),
    local: hop("file:///etc/passwd"),
  });
  const hub = await hubFor(t);
  const files = await runFor(t, temporaryFolder("harvest"), { hub, resolvers: [indexAt(server.origin)] });
  await complete(files, [workCalled("a"), workCalled("round"), workCalled("local")]);
  assert.deepEqual([...files.settled.values()].sort(), ["ok", "redirects", "redirects"]);
  const pages = await runFor(t, temporaryFolder("harvest"), { hub, resolvers: [landingPage] });
  await complete(pages, [{ key: "page", ids: { url: `${server.origin}/files/local` } }]);
  assert.deepEqual([...pages.settled.values()], ["redirects"]);
});

test("the layouts content-addressed and by-doi name files by hash and by DOI", async t => {
  const server = await publisher(t, { a: send(pdf("a")) });
  const hub = await hubFor(t);
  const resolvers = [indexAt(server.origin)];
  const addressed = temporaryFolder("harvest");
  await complete(await runFor(t, addressed, { hub, resolvers, layout: "content-addressed" }), [workCalled("a")]);
  const hash = sha256(pdf("a"));
  assert.deepEqual(readFileSync(join(addressed, "sha256", hash.slice(0, 2), `${hash.slice(2)}.pdf`)), pdf("a"));
  const byDoi = temporaryFolder("harvest");
  await complete(await runFor(t, byDoi, { hub, resolvers, layout: "by-doi" }), [workCalled("a")]);
  assert.deepEqual(readFileSync(join(byDoi, "10.5555", "a.pdf")), pdf("a"));
});

test("a host in a private network is refused unless allowPrivate is set", async t => {
  const server = await publisher(t, { a: send(pdf("a")) });
  const hub = await hubFor(t, { network: { allowPrivate: false } });
  const made = await runFor(t, temporaryFolder("harvest"), { hub, resolvers: [indexAt(server.origin)] });
  await complete(made, [workCalled("a")]);
  assert.equal(made.settled.get("doi:10.5555/a"), "private-address");
  assert.equal(server.connections, 0);
});

/** A manifest and partial files as version 0.1 left them: no column for the length, and the hash under `place`. */
async function oldRun(
  folder: string,
  part: {
    readonly url: string;
    readonly bytes: Buffer;
    readonly etag: string | null;
    readonly shelving: object | null;
  },
): Promise<void> {
  mkdirSync(join(folder, ".parts"), { recursive: true });
  writeFileSync(join(folder, ".parts", "old.part"), part.bytes);
  const manifest = await openManifest(join(folder, "manifest.sqlite"), systemTime);
  const run = await manifest.beginRun("run");
  await manifest.works.add(run, [workCalled("a")], { isPresent: () => false });
  const db = databaseOf(manifest);
  db.exec(`
    DROP INDEX works_waiting;
    DROP TABLE work_ids;
    DROP TABLE robots;
    DROP TABLE work_files;
    ${["metadata", "queue", "not_before_ms", "taken_by", "progress", "inherited", "merged_into"].map(name => `ALTER TABLE works DROP COLUMN ${name};`).join("\n")}
    ALTER TABLE files DROP COLUMN flag;
    ALTER TABLE runs DROP COLUMN flags;
    DROP TABLE parts;
    CREATE TABLE parts (
      place TEXT PRIMARY KEY, work INTEGER NOT NULL REFERENCES works (id), file TEXT NOT NULL, etag TEXT, shelving TEXT
    ) WITHOUT ROWID;
    CREATE INDEX parts_by_work ON parts (work);
    CREATE INDEX works_pending ON works (run, id) WHERE state = 'pending';
    PRAGMA user_version = 1`);
  db.prepare("INSERT INTO parts (place, work, file, etag, shelving) VALUES (?, 1, 'old.part', ?, ?)").run(
    sha256(part.url),
    part.etag,
    part.shelving === null ? null : JSON.stringify(part.shelving),
  );
  await manifest.close();
}

test("a manifest of the first format opens, and its partial file is resumed", async t => {
  const complete3000 = pdf("a", 3000);
  const server = await publisher(t, {
    a: (request, response) => {
      assert.equal(request.headers.range, "bytes=1000-");
      response.writeHead(206, { etag: '"v1"', "content-range": "bytes 1000-2999/3000" });
      response.end(complete3000.subarray(1000));
    },
  });
  const folder = temporaryFolder("harvest");
  const url = `${server.origin}/files/a`;
  await oldRun(folder, { url, bytes: complete3000.subarray(0, 1000), etag: '"v1"', shelving: null });
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  await complete(made, [workCalled("a")]);
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_a.pdf")), complete3000);
});

test("a complete file that a killed run of the first format had not moved is recovered without a request", async t => {
  const server = await publisher(t, {});
  const folder = temporaryFolder("harvest");
  const url = `${server.origin}/files/a`;
  const bytes = pdf("a");
  const stored = {
    sha256: sha256(bytes),
    path: "doi_10.5555_a.pdf",
    bytes: bytes.length,
    mediaType: "application/pdf",
  };
  await oldRun(folder, { url, bytes, etag: null, shelving: { ...stored, place: sha256(url), url, resolver: "index" } });
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  assert.equal(made.run.recovered, 1);
  await complete(made, [workCalled("a")]);
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_a.pdf")), bytes);
  assert.equal(server.requests.length, 0);
  assert.deepEqual(readdirSync(join(folder, ".parts")), []);
});

test("a complete partial file with its announced length is finished without a transfer", async t => {
  const file = pdf("a", 3000);
  const server = await publisher(t, {
    a: (_, response) => response.writeHead(416, { "content-range": "bytes */3000" }).end(),
  });
  const folder = temporaryFolder("harvest");
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  await made.run.addWorks([workCalled("a")]);
  const part = { urlHash: sha256(`${server.origin}/files/a`), work: 1, file: "a.part", destination: undefined };
  await made.run.manifest.files.savePart({ ...part, validator: '"v1"', totalBytes: 3000 });
  writeFileSync(join(folder, ".parts", "a.part"), file);
  made.run.pipeline.inputEnded();
  await made.run.pipeline.run();
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_a.pdf")), file);
  assert.equal(fetches(server).length, 1);
});

test("bytes that were buffered when the connection broke are not requested again", async t => {
  const file = pdf("a", 3000);
  const { bytes, server } = await interrupted(t, file, (request, response, visit) => {
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1]);
    response.writeHead(206, { etag: '"v1"', "content-range": `bytes ${from}-2999/3000` });
    if (visit > 2) response.end(file.subarray(from));
    else response.write(file.subarray(from, 2000), () => response.socket?.end());
  });
  assert.deepEqual(bytes, file);
  assert.deepEqual(
    fetches(server).map(({ headers }) => headers.range),
    [undefined, "bytes=1000-", "bytes=2000-"],
  );
});

test("a publisher that sets a cookie and redirects gets the cookie back, for files and for pages, and no other host does", async t => {
  const received: string[] = [];
  const server = await serve(t, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
    const name = pathname.split("/").at(-1) ?? "";
    const origin = `http://localhost:${server.port}`;
    const cookie = request.headers.cookie ?? "";
    const own = `id=${request.headers.host?.split(":")[0]}`;
    if (pathname === "/robots.txt") response.writeHead(404).end();
    else if (pathname.startsWith("/index/")) {
      received.push(`index ${cookie}`);
      const kind = name === "page" ? "landing" : "pdf";
      response.end(JSON.stringify([{ url: `${origin}/files/${name}`, kind }]));
    } else if (searchParams.has("check"))
      response.writeHead(302, { location: name, "set-cookie": ["seen=1", `${own}; Path=/; HttpOnly`] }).end();
    else if (!cookie.includes(own)) response.writeHead(302, { location: `${name}?check=1` }).end();
    else if (name === "page")
      response
        .setHeader("content-type", "text/html")
        .end('<html><meta name="citation_pdf_url" content="/files/linked"></html>');
    else if (name === "elsewhere") response.writeHead(302, { location: `${server.origin}/other/file` }).end();
    else response.end(pdf(name));
    if (pathname.startsWith("/other/"))
      received.push(`other ${cookie.replace("; seen=1", "").replace("seen=1; ", "")}`);
  });
  const folder = temporaryFolder("harvest");
  const made = await runFor(t, folder, {
    hub: await hubFor(t),
    resolvers: [indexAt(server.origin), landingPage],
    workers: 1,
  });
  await complete(made, ["a", "page", "elsewhere"].map(workCalled));
  assert.deepEqual(Object.fromEntries(made.settled), {
    "doi:10.5555/a": "ok",
    "doi:10.5555/page": "ok",
    "doi:10.5555/elsewhere": "ok",
  });
  assert.deepEqual(new Set(received), new Set(["index ", "other ", "other id=127.0.0.1"]));
});

test("a run with another manifest leaves the partial files of a running one in the same folder alone", async t => {
  let finish: () => void = () => undefined;
  const server = await publisher(t, {
    a: (_, response) => {
      response.write(pdf("a").subarray(0, 100));
      finish = () => response.end(pdf("a").subarray(100));
    },
    b: send(pdf("b")),
  });
  const folder = temporaryFolder("harvest");
  const options = { hub: await hubFor(t), resolvers: [indexAt(server.origin)] };
  const first = await runFor(t, folder, options);
  const ended = complete(first, [workCalled("a")]);
  await eventually(() => partBytes(folder) > 0);
  const other = await runFor(t, folder, { ...options, manifest: join(folder, "other.sqlite") });
  await complete(other, [workCalled("b")]);
  finish();
  await ended;
  assert.deepEqual(files(folder), ["doi_10.5555_a.pdf", "doi_10.5555_b.pdf"]);
  assert.deepEqual(readdirSync(join(folder, ".parts")), []);
});

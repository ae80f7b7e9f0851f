import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import {
  complete,
  eventually,
  folderFor,
  indexAt,
  pdf,
  runFor,
  sha256,
  workCalled,
} from "../../../test/harvest/kit.ts";
import { hubFor, serve, type TestServer } from "../../../test/http/kit.ts";
import { reportOf } from "../manifest/manifest-report.ts";
import type { Candidate } from "../resolvers/resolver.ts";

type FileHandlers = Readonly<
  Record<string, (request: IncomingMessage, response: ServerResponse, visit: number) => void>
>;

/** An index that names `/files/<name>` for each work, and whatever lies there. */
function library(
  t: TestContext,
  handlers: FileHandlers,
  candidates: (name: string, origin: string) => readonly Candidate[] = only,
) {
  const visits = new Map<string, number>();
  return serve(t, (request, response) => {
    const [, room = "", ...rest] = (request.url ?? "").split("/");
    const name = rest.at(-1) ?? "";
    if (room === "index") {
      const origin = `http://${request.headers.host}`;
      response.setHeader("content-type", "application/json").end(JSON.stringify(candidates(name, origin)));
      return;
    }
    const visit = (visits.get(name) ?? 0) + 1;
    visits.set(name, visit);
    const answer = handlers[name];
    if (answer === undefined) response.writeHead(404).end("not here");
    else answer(request, response, visit);
  });
}

function only(name: string, origin: string): readonly Candidate[] {
  return [{ url: `${origin}/files/${name}`, kind: "pdf" }];
}

const give = (body: string | Buffer) => (_: IncomingMessage, response: ServerResponse) => response.end(body);

function partBytes(folder: string): number {
  const parts = join(folder, ".parts");
  return readdirSync(parts).reduce((sum, name) => sum + statSync(join(parts, name)).size, 0);
}

const files = (folder: string) =>
  readdirSync(folder)
    .filter(name => /\.(?:pdf|xml|html)$/.test(name))
    .sort();
const fetches = ({ requests }: TestServer) => requests.filter(({ url }) => url?.startsWith("/files/"));

test("a sound file is put under the work's name, with its hash in the manifest", async t => {
  const server = await library(t, { a: give(pdf("a")) });
  const folder = folderFor(t);
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  made.run.addWorks([workCalled("a")]);
  made.run.pipeline.inputEnded();
  await made.run.pipeline.run();
  assert.deepEqual(files(folder), ["doi_10.5555_a.pdf"]);
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_a.pdf")), pdf("a"));
  assert.equal(made.run.manifest.files.file(sha256(pdf("a")))?.path, "doi_10.5555_a.pdf");
  assert.deepEqual(readdirSync(join(folder, ".parts")), []);
  const { works, files: count } = reportOf(made.run.manifest.db);
  assert.deepEqual(works, { total: 1, done: 1, failed: 0, pending: 0 });
  assert.deepEqual(count, { count: 1, bytes: 400 });
});

test("what is no file of the kind is refused, each for its reason, and leaves nothing behind", async t => {
  const html = "<!doctype html><html><title>Sign in</title></html>";
  const challenge = "<!doctype html><html><title>Just a moment...</title></html>";
  const server = await library(t, {
    page: give(html),
    challenge: give(challenge),
    "challenge-by-field": (_, response) => response.setHeader("x-amzn-waf-action", "challenge").writeHead(202).end(),
    text: give("just words, many of them"),
    empty: give(""),
    cut: give(pdf("cut").subarray(0, 300)),
    large: give(pdf("large", 5000)),
    "large-unsaid": (_, response) => response.write(pdf("x", 3000), () => response.end(pdf("y", 3000))),
    gone: (_, response) => response.writeHead(410).end(html),
  });
  const folder = folderFor(t);
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

test("a file that is not the one its service describes is refused, and the next copy is taken", async t => {
  const good = pdf("good");
  const server = await library(t, { a: give(good), wrong: give(pdf("wrong")) }, (_, origin) => [
    { url: `${origin}/files/wrong`, kind: "pdf", checksum: { algorithm: "sha256", hex: sha256(good) } },
    { url: `${origin}/files/a`, kind: "pdf", checksum: { algorithm: "sha256", hex: sha256(good) } },
  ]);
  const made = await runFor(t, folderFor(t), { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  await complete(made, [workCalled("a")]);
  assert.deepEqual(
    made.attempts.map(({ step, reason }) => `${step} ${reason}`),
    ["ask found", "fetch checksum-mismatch", "fetch ok"],
  );
});

test("a file that breaks off is gone on with where it ended, when its validator is strong", async t => {
  const [strong, weak] = [pdf("strong", 3000), pdf("weak", 3000)];
  const held: ServerResponse[] = [];
  const server = await library(t, {
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
  const folder = folderFor(t);
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

test("a part whose file has changed meanwhile is fetched anew, and the halves are never mixed", async t => {
  const old = pdf("old", 3000);
  const fresh = pdf("fresh", 2000);
  const held: ServerResponse[] = [];
  const server = await library(t, {
    a: (_, response, visit) => {
      response.setHeader("etag", visit === 1 ? '"v1"' : '"v2"');
      if (visit > 1) response.end(fresh);
      else held.push(response.setHeader("content-length", old.length)) && response.write(old.subarray(0, 1000));
    },
  });
  const folder = folderFor(t);
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  const completed = complete(made, [workCalled("a")]);
  await eventually(() => partBytes(folder) === 1000);
  for (const response of held) response.socket?.destroy();
  await completed;
  assert.equal(fetches(server)[1]?.headers.range, "bytes=1000-");
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_a.pdf")), fresh);
});

/** The first answer breaks off after a thousand bytes; what the later ones are is up to `rest`. */
async function brokenOff(t: TestContext, whole: Buffer, rest: FileHandlers[string]) {
  const held: ServerResponse[] = [];
  const server = await library(t, {
    a: (request, response, visit) => {
      if (visit > 1) return rest(request, response, visit);
      response.setHeader("etag", '"v1"').setHeader("content-length", whole.length).write(whole.subarray(0, 1000));
      held.push(response);
    },
  });
  const folder = folderFor(t);
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  const completed = complete(made, [workCalled("a")]);
  await eventually(() => partBytes(folder) === 1000);
  for (const response of held) response.socket?.destroy();
  await completed;
  return { server, attempts: made.attempts, bytes: readFileSync(join(folder, "doi_10.5555_a.pdf")) };
}

test("a server that goes on with another version, whatever it was asked, is asked for all of it", async t => {
  const [old, fresh] = [pdf("old", 3000), pdf("fresh", 3000)];
  const { bytes, server } = await brokenOff(t, old, (request, response) => {
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

test("a server that gives less than the rest is asked on, also where what has come looks whole", async t => {
  // Files that were amended hold an end mark for each time.
  const whole = Buffer.concat([pdf("first", 2000), pdf("amended", 1000)]);
  const { bytes, attempts } = await brokenOff(t, whole, (request, response) => {
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1]);
    const part = whole.subarray(from, from + 1000);
    response.setHeader("etag", '"v1"').setHeader("content-range", `bytes ${from}-${from + 999}/${whole.length}`);
    response.writeHead(206).end(part);
  });
  assert.deepEqual(bytes, whole);
  assert.deepEqual(
    attempts.filter(({ step }) => step === "fetch").map(({ reason, message }) => message ?? reason),
    [attempts[1]?.message, "2000 of 3000 bytes came", "ok"],
  );
});

test("a way that leads in a circle is in the record of what was tried", async t => {
  const server = await library(t, { a: (_, response) => response.writeHead(302, { location: "/files/a" }).end() });
  const made = await runFor(t, folderFor(t), { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  await complete(made, [workCalled("a")]);
  assert.deepEqual(
    made.attempts.map(({ step, reason, status }) => [step, reason, status]),
    [
      ["ask", "found", 200],
      ["fetch", "redirects", 302],
    ],
  );
});

test("the same bytes from two addresses are one file, the same address is fetched once", async t => {
  const same = pdf("same");
  const handlers = { a: give(same), b: give(same), shared: give(pdf("shared")) };
  const server = await library(t, handlers, (name, origin) => [
    { url: `${origin}/files/${name.startsWith("s") ? "shared" : name}`, kind: "pdf" },
  ]);
  const folder = folderFor(t);
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  await complete(made, ["a", "b", "s1", "s2", "s3"].map(workCalled));
  assert.equal(files(folder).length, 2);
  assert.deepEqual([...made.settled.values()].sort(), ["duplicate", "duplicate", "duplicate", "ok", "ok"]);
  assert.equal(fetches(server).filter(({ url }) => url === "/files/shared").length, 1);
});

test("a second run leaves alone what is there, and fetches what has gone", async t => {
  const server = await library(t, { a: give(pdf("a")), b: give(pdf("b")) });
  const folder = folderFor(t);
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

test("a refresh asks whether a file still holds, and fetches it only when it does not", async t => {
  let body = pdf("first");
  const server = await library(t, {
    a: (request, response) => {
      const etag = `"${sha256(body)}"`;
      response.setHeader("etag", etag);
      if (request.headers["if-none-match"] === etag) response.writeHead(304).end();
      else response.end(body);
    },
  });
  const folder = folderFor(t);
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
  // The old file is somebody's by now; the new one lies beside it.
  assert.deepEqual(files(folder), ["doi_10.5555_a.pdf", "doi_10.5555_a~2.pdf"]);
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_a~2.pdf")), body);
});

test("a file of somebody else's is never overwritten", async t => {
  const server = await library(t, { a: give(pdf("a")) });
  const folder = folderFor(t);
  writeFileSync(join(folder, "doi_10.5555_a.pdf"), "mine");
  const made = await runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  await complete(made, [workCalled("a")]);
  assert.equal(readFileSync(join(folder, "doi_10.5555_a.pdf"), "utf8"), "mine");
  assert.deepEqual(readFileSync(join(folder, "doi_10.5555_a~2.pdf")), pdf("a"));
});

test("redirects are followed hop by hop, and circles are noticed", async t => {
  const hop = (to: string) => (_: IncomingMessage, response: ServerResponse) =>
    response.writeHead(302, { location: to }).end();
  const server = await library(t, { a: hop("/files/b"), b: hop("c"), c: give(pdf("c")), round: hop("/files/round") });
  const made = await runFor(t, folderFor(t), { hub: await hubFor(t), resolvers: [indexAt(server.origin)] });
  await complete(made, [workCalled("a"), workCalled("round")]);
  assert.deepEqual(Object.fromEntries(made.settled), { "doi:10.5555/a": "ok", "doi:10.5555/round": "redirects" });
});

test("files are found under their hash, or under their DOI, when that is the layout", async t => {
  const server = await library(t, { a: give(pdf("a")) });
  const hub = await hubFor(t);
  const resolvers = [indexAt(server.origin)];
  const addressed = folderFor(t);
  await complete(await runFor(t, addressed, { hub, resolvers, layout: "content-addressed" }), [workCalled("a")]);
  const hash = sha256(pdf("a"));
  assert.deepEqual(readFileSync(join(addressed, "sha256", hash.slice(0, 2), `${hash.slice(2)}.pdf`)), pdf("a"));
  const byDoi = folderFor(t);
  await complete(await runFor(t, byDoi, { hub, resolvers, layout: "by-doi" }), [workCalled("a")]);
  assert.deepEqual(readFileSync(join(byDoi, "10.5555", "a.pdf")), pdf("a"));
});

test("an address of a private network is refused unless that was allowed", async t => {
  const server = await library(t, { a: give(pdf("a")) });
  const hub = await hubFor(t, { network: { allowPrivate: false } });
  const made = await runFor(t, folderFor(t), { hub, resolvers: [indexAt(server.origin)] });
  await complete(made, [workCalled("a")]);
  assert.equal(made.settled.get("doi:10.5555/a"), "private-address");
  assert.equal(server.connections, 0);
});

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { appendFile, readdir, readFile, stat, truncate } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type Handler, hubFor, serve } from "../../test/http/kit.ts";
import { moveDurably, writeAtomically } from "./atomic-file.ts";
import { removePartialFile } from "./partial-file.ts";
import { downloadFile, type ResumableDownloadOptions } from "./resumable-download.ts";

const file = randomBytes(300_000);
const sha256 = createHash("sha256").update(file).digest("hex");

function folderFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "docstokg-save-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Serves the file, with ranges, as a good server does. */
function give(request: IncomingMessage, response: ServerResponse, headers = { etag: '"one"' } as object): void {
  const [, from] = /^bytes=(\d+)-$/.exec(request.headers["range"] ?? "") ?? [];
  const isSame = request.headers["if-range"] === undefined || request.headers["if-range"] === '"one"';
  if (from === undefined || !isSame) {
    response.writeHead(200, { "content-length": file.length, ...headers }).end(file);
    return;
  }
  if (Number(from) >= file.length) {
    response.writeHead(416, { "content-range": `bytes */${file.length}` }).end();
    return;
  }
  const rest = file.subarray(Number(from));
  response
    .writeHead(206, {
      "content-length": rest.length,
      "content-range": `bytes ${from}-${file.length - 1}/${file.length}`,
      ...headers,
    })
    .end(rest);
}

/** What to break off, and when: a reader that lags behind would lose what has come and is not read yet. */
const breaks = new Map<number, ServerResponse>();

/** The beginning of the file, and when that has been read the connection is gone. */
function breakOff(response: ServerResponse, bytes: number, headers: object = { etag: '"one"' }, from = 0): void {
  const range = from > 0 ? { "content-range": `bytes ${from}-${file.length - 1}/${file.length}` } : {};
  response.writeHead(from > 0 ? 206 : 200, { "content-length": file.length - from, ...range, ...headers });
  breaks.set(from + bytes, response);
  response.write(file.subarray(from, from + bytes));
}

async function saving(t: TestContext, handler: Handler, options: Partial<ResumableDownloadOptions> = {}) {
  const server = await serve(t, handler);
  const hub = await hubFor(t, { retry: false, breakers: { defaults: { fail_max: 100 } } });
  const path = options.path ?? join(folderFor(t), "file.part");
  const save = (more: Partial<ResumableDownloadOptions> = {}) =>
    downloadFile({
      url: "http://127.0.0.1/file",
      path,
      maxBytes: 1_000_000,
      onBytes: bytes => {
        breaks.get(bytes)?.destroy();
        breaks.delete(bytes);
      },
      send: headers => hub.request(`${server.origin}/file`, { role: "artifact", headers }),
      ...options,
      ...more,
    });
  return { server, hub, path, save };
}

test("a file is saved whole, with its hash, and no note is left", async t => {
  const { save, path } = await saving(t, (request, response) => give(request, response));
  const seen: number[] = [];
  const saved = await save({ onBytes: bytes => seen.push(bytes) });
  assert.deepEqual(
    { ...saved, headers: undefined },
    { kind: "saved", bytes: file.length, sha256, headers: undefined, requests: 1, resumedBytes: 0 },
  );
  assert.ok((await readFile(path)).equals(file));
  assert.equal(seen.at(-1), file.length);
  assert.deepEqual(await readdir(join(path, "..")), ["file.part"]);
});

test("a body that breaks off is gone on with where it broke off", async t => {
  const { save, server } = await saving(t, (request, response, number) => {
    if (number === 1) breakOff(response, 100_000);
    else if (number === 2) breakOff(response, 50_000, { etag: '"one"' }, 100_000);
    else give(request, response);
  });
  const saved = await save();
  assert.ok(saved.kind === "saved");
  assert.equal(saved.sha256, sha256);
  assert.equal(saved.requests, 3);
  assert.equal(saved.resumedBytes, 150_000);
  assert.deepEqual(
    server.requests.map(({ headers }) => [headers["range"], headers["if-range"]]),
    [
      [undefined, undefined],
      ["bytes=100000-", '"one"'],
      ["bytes=150000-", '"one"'],
    ],
  );
});

test("what has come before a break is kept, also when nobody was reading yet", async t => {
  const { save } = await saving(t, (request, response, number) => {
    if (number > 1) return give(request, response);
    response.writeHead(200, { "content-length": file.length, etag: '"one"' });
    response.write(file.subarray(0, 100_000), () => response.socket?.end());
  });
  const saved = await save();
  assert.ok(saved.kind === "saved");
  assert.equal(saved.sha256, sha256);
  assert.equal(saved.resumedBytes, 100_000);
});

test("without a strong validator it begins anew", async t => {
  for (const headers of [{ etag: 'W/"one"' }, {}]) {
    const { save, server } = await saving(t, (request, response, number) => {
      if (number === 1) breakOff(response, 100_000, headers);
      else give(request, response, headers);
    });
    const saved = await save();
    assert.ok(saved.kind === "saved");
    assert.equal(saved.sha256, sha256);
    assert.equal(saved.resumedBytes, 0);
    assert.equal(server.requests[1]?.headers["range"], undefined);
  }
});

test("a file that changed meanwhile comes whole, and nothing of the old one is left", async t => {
  const other = randomBytes(200_000);
  const { save, path } = await saving(t, (request, response, number) => {
    if (number === 1) return breakOff(response, 100_000);
    assert.equal(request.headers["if-range"], '"one"');
    response.writeHead(200, { "content-length": other.length, etag: '"two"' }).end(other);
  });
  const saved = await save();
  assert.ok(saved.kind === "saved");
  assert.ok((await readFile(path)).equals(other));
  assert.equal(saved.sha256, createHash("sha256").update(other).digest("hex"));
});

test("a part that does not fit is thrown away and the whole is asked for", async t => {
  const { save, path } = await saving(t, (request, response, number) => {
    if (number === 1) return breakOff(response, 100_000);
    if (request.headers["range"] === undefined) return give(request, response);
    response.writeHead(206, { "content-range": `bytes 0-9/${file.length}`, "content-length": 10 });
    response.end(file.subarray(0, 10));
  });
  const saved = await save();
  assert.ok(saved.kind === "saved");
  assert.ok((await readFile(path)).equals(file));
});

test("what a run has left is gone on with by the next, and by the same URL only", async t => {
  const { save, path, server } = await saving(t, (request, response, number) => {
    if (number === 1) breakOff(response, 120_000);
    else give(request, response);
  });
  await assert.rejects(save({ attempts: 1 }), {
    code: "DOCSTOKG_DOWNLOAD",
    message: /^127\.0\.0\.1 broke off 1 times: /,
  });
  assert.equal((await stat(path)).size, 120_000);
  const saved = await save({ attempts: 1 });
  assert.ok(saved.kind === "saved");
  assert.equal(saved.sha256, sha256);
  assert.equal(saved.resumedBytes, 120_000);

  // Bytes whose note is gone, or which are another URL's, are nobody's.
  await truncate(path, 1000);
  assert.equal((await save()).kind, "saved");
  assert.equal(server.requests.at(-1)?.headers["range"], undefined);
  assert.ok((await readFile(path)).equals(file));
});

test("a half of another URL is not gone on with", async t => {
  const { save, server } = await saving(t, (request, response, number) => {
    if (number === 1) breakOff(response, 120_000);
    else give(request, response);
  });
  await assert.rejects(save({ attempts: 1 }));
  assert.equal((await save({ url: "http://127.0.0.1/other" })).kind, "saved");
  assert.equal(server.requests[1]?.headers["range"], undefined);
});

test("a half that turns out to be all of it is finished without another byte", async t => {
  const { save, path } = await saving(t, (request, response, number) => {
    // The last byte came, and the end of the answer did not.
    if (number === 1) breakOff(response, file.length - 1);
    else give(request, response);
  });
  await assert.rejects(save({ attempts: 1 }));
  await appendFile(path, file.subarray(file.length - 1));
  const saved = await save({ attempts: 1 });
  assert.ok(saved.kind === "saved");
  assert.equal(saved.sha256, sha256);
});

test("an earlier answer's validators ask for changes only", async t => {
  const { save, server } = await saving(t, (request, response) => {
    const isKnown = request.headers["if-none-match"] === '"one"' || request.headers["if-modified-since"] !== undefined;
    if (isKnown) response.writeHead(304, { etag: '"one"' }).end();
    else give(request, response);
  });
  assert.equal((await save({ knownValidators: { etag: '"one"', lastModified: "x" } })).kind, "unchanged");
  assert.equal(server.requests[0]?.headers["if-modified-since"], undefined);
  assert.equal((await save({ knownValidators: { lastModified: "Mon, 16 Nov 2026 01:00:00 GMT" } })).kind, "unchanged");
});

test("what is no file is handed over with how it begins", async t => {
  const { save } = await saving(t, (_, response) => {
    response.writeHead(403, { "content-type": "text/plain" }).end(`no${"o".repeat(50_000)}`);
  });
  const answer = await save();
  assert.ok(answer.kind === "answered");
  assert.equal(answer.status, 403);
  assert.match(answer.text, /^noo/);
  assert.equal(answer.text.length, 16_384);
});

test("a file longer than wanted is refused by its announced length, and by its bytes, and leaves nothing", async t => {
  const { save, path } = await saving(t, (request, response, number) => {
    if (number === 1) return give(request, response);
    response.writeHead(200, { etag: '"one"' });
    response.end(file);
  });
  await assert.rejects(save({ maxBytes: 1000 }), /sends a file of 300000 bytes where at most 1000 are wanted/);
  await assert.rejects(save({ maxBytes: 1000 }), /sends a file where at most 1000 are wanted/);
  await assert.rejects(stat(path), { code: "ENOENT" });
  await removePartialFile(path);
});

test("an abort leaves the half for the next time", async t => {
  const controller = new AbortController();
  const { signal } = controller;
  const { save, server, hub, path } = await saving(t, (request, response, number) => {
    if (number > 1) return give(request, response);
    response.writeHead(200, { "content-length": file.length, etag: '"one"' });
    response.write(file.subarray(0, 100_000));
  });
  const aborted = save({
    signal,
    onBytes: bytes => {
      if (bytes === 100_000) controller.abort(new Error("enough"));
    },
    send: headers => hub.request(`${server.origin}/file`, { role: "artifact", headers, signal }),
  });
  await assert.rejects(aborted, { message: "enough" });
  assert.equal((await stat(path)).size, 100_000);
  const saved = await save();
  assert.ok(saved.kind === "saved");
  assert.equal(saved.resumedBytes, 100_000);
});

test("a small file is written whole or not at all", async t => {
  const folder = folderFor(t);
  const path = join(folder, "deep", "note.json");
  await writeAtomically(path, "one\n");
  await writeAtomically(path, "two\n");
  assert.equal(await readFile(path, "utf8"), "two\n");
  assert.deepEqual(await readdir(join(folder, "deep")), ["note.json"]);
  await assert.rejects(writeAtomically(join(path, "below"), "x"));
  await moveDurably(path, join(folder, "there", "note.json"));
  assert.equal(await readFile(join(folder, "there", "note.json"), "utf8"), "two\n");
});

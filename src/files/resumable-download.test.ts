import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { appendFile, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import {
  downloadFor,
  file,
  interrupt,
  serveFile,
  sha256,
  URL_OF_FILE,
} from "../../test/files/interrupted-downloads.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { PartialFile, removePartialFile } from "./partial-file.ts";
import { type DownloadResponse, downloadFile } from "./resumable-download.ts";
import { resumeRecordBeside } from "./resume-record.ts";

test("a file is saved complete, with its hash, and only the record stays beside it", async t => {
  const { save, path } = await downloadFor(t, (request, response) => serveFile(request, response));
  const seen: number[] = [];
  const saved = await save({ onBytes: bytes => seen.push(bytes) });
  assert.deepEqual(
    { ...saved, headers: undefined },
    {
      kind: "saved",
      status: 200,
      bytes: file.length,
      sha256,
      headers: undefined,
      isFullLength: true,
      requests: 1,
      resumedBytes: 0,
    },
  );
  assert.ok((await readFile(path)).equals(file));
  assert.equal(seen.at(-1), file.length);
  assert.deepEqual(await readdir(join(path, "..")), ["file.part", "file.part.json"]);
  await removePartialFile(path, resumeRecordBeside(path, URL_OF_FILE));
  assert.deepEqual(await readdir(join(path, "..")), []);
});

test("an interrupted body is resumed where it ended", async t => {
  const { save, server } = await downloadFor(t, (request, response, number) => {
    if (number === 1) interrupt(response, 100_000);
    else if (number === 2) interrupt(response, 50_000, { etag: '"one"' }, 100_000);
    else serveFile(request, response);
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

test("a stalled disk does not count as a slow server, which has its full time after that", async t => {
  const path = join(temporaryFolder("download"), "file.part");
  const time = new FakeTime();
  const began = Promise.withResolvers<void>();
  const stalled = Promise.withResolvers<void>();
  const { append } = PartialFile.prototype;
  t.mock.method(PartialFile.prototype, "append", async function (this: PartialFile, chunk: Uint8Array) {
    began.resolve();
    await stalled.promise;
    await append.call(this, chunk);
  });
  const body = new Readable({ read: () => undefined });
  let requests = 0;
  const download = downloadFile({
    ...{ path, record: resumeRecordBeside(path, URL_OF_FILE), maxBytes: 10_000 },
    minSpeed: { bytes: 1000, periodMs: 30_000, time },
    send: async () => {
      requests += 1;
      assert.equal(requests, 1);
      return {
        statusCode: 200,
        headers: { "content-length": "2000", etag: '"a"' },
        body,
      } as unknown as DownloadResponse;
    },
  });
  body.push(Buffer.alloc(500));
  await began.promise;
  await time.advance(60_000);
  stalled.resolve();
  await time.advance(29_999);
  body.push(Buffer.alloc(1500));
  body.push(null);
  assert.equal((await download).kind, "saved");
  assert.equal(time.armedTimers, 0);
});

test("if the partial file cannot be created, the response body is closed", async () => {
  const folder = temporaryFolder("download");
  await writeFile(join(folder, "file"), "not a folder");
  const path = join(folder, "file", "file.part");
  const body = new Readable({ read: () => undefined });
  const record = { load: async () => undefined, save: async () => undefined, delete: async () => undefined };
  const response = { statusCode: 200, headers: {}, body } as unknown as DownloadResponse;
  await assert.rejects(downloadFile({ path, record, maxBytes: 1000, send: async () => response }), {
    code: "DOCSTOKG_DOWNLOAD",
  });
  assert.equal(body.destroyed, true);
});

test("bytes that were buffered when the connection broke are kept", async t => {
  const { save } = await downloadFor(t, (request, response, number) => {
    if (number > 1) return serveFile(request, response);
    response.writeHead(200, { "content-length": file.length, etag: '"one"' });
    response.write(file.subarray(0, 100_000), () => response.socket?.end());
  });
  const saved = await save();
  assert.ok(saved.kind === "saved");
  assert.equal(saved.sha256, sha256);
  assert.equal(saved.resumedBytes, 100_000);
});

test("without a strong validator the download starts from the beginning", async t => {
  for (const headers of [{ etag: 'W/"one"' }, {}]) {
    const { save, server } = await downloadFor(t, (request, response, number) => {
      if (number === 1) interrupt(response, 100_000, headers);
      else serveFile(request, response, headers);
    });
    const saved = await save({ onResume: () => assert.fail("nothing is resumed") });
    assert.ok(saved.kind === "saved");
    assert.equal(saved.sha256, sha256);
    assert.equal(saved.resumedBytes, 0);
    assert.equal(server.requests[1]?.headers["range"], undefined);
  }
});

test("a file that has changed is downloaded from the beginning, without bytes of the old version", async t => {
  const other = randomBytes(200_000);
  const { save, path } = await downloadFor(t, (request, response, number) => {
    if (number === 1) return interrupt(response, 100_000);
    assert.equal(request.headers["if-range"], '"one"');
    response.writeHead(200, { "content-length": other.length, etag: '"two"' }).end(other);
  });
  const saved = await save();
  assert.ok(saved.kind === "saved");
  assert.ok((await readFile(path)).equals(other));
  assert.equal(saved.sha256, createHash("sha256").update(other).digest("hex"));
});

test("after a 206 that does not continue the partial file, the complete file is requested", async t => {
  const { save, path } = await downloadFor(t, (request, response, number) => {
    if (number === 1) return interrupt(response, 100_000);
    if (request.headers["range"] === undefined) return serveFile(request, response);
    response.writeHead(206, { "content-range": `bytes 0-9/${file.length}`, "content-length": 10 });
    response.end(file.subarray(0, 10));
  });
  const saved = await save();
  assert.ok(saved.kind === "saved");
  assert.ok((await readFile(path)).equals(file));
});

test("a later call resumes the partial file, and only with its record", async t => {
  const { save, path, server } = await downloadFor(t, (request, response, number) => {
    if (number === 1) interrupt(response, 120_000);
    else serveFile(request, response);
  });
  const interrupted = await save({ maxInterruptions: 1 });
  assert.ok(interrupted.kind === "incomplete");
  assert.deepEqual([interrupted.bytes, interrupted.requests], [120_000, 1]);
  assert.ok(interrupted.cause instanceof Error);
  assert.equal((await stat(path)).size, 120_000);
  const saved = await save({ maxInterruptions: 1 });
  assert.ok(saved.kind === "saved");
  assert.equal(saved.sha256, sha256);
  assert.equal(saved.resumedBytes, 120_000);

  await truncate(path, 1000);
  await rm(`${path}.json`);
  assert.equal((await save()).kind, "saved");
  assert.equal(server.requests.at(-1)?.headers["range"], undefined);
  assert.ok((await readFile(path)).equals(file));
});

test("the partial file of another URL is not resumed", async t => {
  const { save, server, path } = await downloadFor(t, (request, response, number) => {
    if (number === 1) interrupt(response, 120_000);
    else serveFile(request, response);
  });
  assert.equal((await save({ maxInterruptions: 1 })).kind, "incomplete");
  assert.equal((await save({ record: resumeRecordBeside(path, "http://127.0.0.1/other") })).kind, "saved");
  assert.equal(server.requests[1]?.headers["range"], undefined);
});

test("a response for another URL that is not the file leaves the partial file for its own URL", async t => {
  const { save, path, server } = await downloadFor(t, (request, response, number) => {
    if (number === 1) interrupt(response, 100_000);
    else if (number === 2) response.writeHead(404).end("none");
    else serveFile(request, response);
  });
  const cut = await save({ maxInterruptions: 1 });
  assert.ok(cut.kind === "incomplete" && cut.isResumable);
  const record = resumeRecordBeside(path, "https://mirror.example.org/file");
  assert.equal((await save({ record })).kind, "response");
  assert.equal((await save({ record, maxBytes: 1000 })).kind, "too-large");
  assert.equal((await stat(path)).size, 100_000);
  const saved = await save();
  assert.equal(server.requests.at(-1)?.headers["range"], "bytes=100000-");
  assert.ok(saved.kind === "saved" && saved.sha256 === sha256);
});

test("a partial file that is complete already is finished without a transfer", async t => {
  const { save, path } = await downloadFor(t, (request, response, number) => {
    // The process died after the last byte and before the end of the response.
    if (number === 1) interrupt(response, file.length - 1);
    else serveFile(request, response);
  });
  assert.equal((await save({ maxInterruptions: 1 })).kind, "incomplete");
  await appendFile(path, file.subarray(file.length - 1));
  const saved = await save({ maxInterruptions: 1 });
  assert.ok(saved.kind === "saved");
  assert.equal(saved.sha256, sha256);
});

test("validators of a stored copy make the request conditional", async t => {
  const { save, server } = await downloadFor(t, (request, response) => {
    const isKnown = request.headers["if-none-match"] === '"one"' || request.headers["if-modified-since"] !== undefined;
    if (isKnown) response.writeHead(304, { etag: '"one"' }).end();
    else serveFile(request, response);
  });
  assert.equal((await save({ knownValidators: { etag: '"one"', lastModified: "x" } })).kind, "unchanged");
  assert.equal(server.requests[0]?.headers["if-modified-since"], undefined);
  assert.equal((await save({ knownValidators: { lastModified: "Mon, 16 Nov 2026 01:00:00 GMT" } })).kind, "unchanged");
});

test("a response that is not the file is returned with its beginning, and leaves no file", async t => {
  const { save, path } = await downloadFor(t, (_, response) => {
    response.writeHead(403, { "content-type": "text/plain" }).end(`no${"o".repeat(50_000)}`);
  });
  const result = await save();
  assert.ok(result.kind === "response");
  assert.equal(result.status, 403);
  assert.match(result.beginning, /^noo/);
  assert.equal(result.beginning.length, 16_384);
  assert.deepEqual(await readdir(join(path, "..")), []);
});

test("a file above maxBytes is refused by its announced length or by its bytes, and leaves nothing", async t => {
  const { save, path } = await downloadFor(t, (request, response, number) => {
    if (number === 1) return serveFile(request, response);
    response.writeHead(200, { etag: '"one"' });
    response.end(file);
  });
  for (const bytes of [file.length, undefined]) {
    const result = await save({ maxBytes: 1000 });
    assert.ok(result.kind === "too-large");
    assert.equal(result.bytes, bytes);
    assert.deepEqual(await readdir(join(path, "..")), []);
  }
});

test("an abort keeps the bytes for the next call", async t => {
  const controller = new AbortController();
  const { signal } = controller;
  const { save, server, hub, path } = await downloadFor(t, (request, response, number) => {
    if (number > 1) return serveFile(request, response);
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

test("bytes that cannot be resumed are deleted when the download is interrupted", async t => {
  const { save, path } = await downloadFor(t, (_, response) => interrupt(response, 100_000, {}));
  const result = await save({ maxInterruptions: 1 });
  assert.ok(result.kind === "incomplete");
  assert.equal(result.bytes, 100_000);
  assert.deepEqual(await readdir(join(path, "..")), []);
});

test("a body that is shorter than announced is incomplete, and its bytes are kept", async t => {
  const { save, server } = await downloadFor(t, (request, response, number) => {
    if (number === 1) return interrupt(response, 100_000);
    if (number > 2) return serveFile(request, response);
    // Less than the requested range, which a server may send.
    const range = { "content-range": `bytes 100000-149999/${file.length}`, "content-length": 50_000 };
    response.writeHead(206, { ...range, etag: '"one"' }).end(file.subarray(100_000, 150_000));
  });
  await save({ maxInterruptions: 1 });
  const result = await save({ maxInterruptions: 1 });
  assert.ok(result.kind === "incomplete");
  assert.equal(result.message, "received 150000 of 300000 bytes");
  assert.equal(result.cause, undefined);
  assert.equal((await save()).kind, "saved");
  assert.equal(server.requests[2]?.headers["range"], "bytes=150000-");
});

test("more bytes than announced are never joined, and the file is requested from the beginning", async t => {
  const { save, path, server } = await downloadFor(t, (request, response, number) => {
    if (number === 1) return interrupt(response, 100_000);
    if (request.headers["range"] === undefined) return serveFile(request, response);
    const range = { "content-range": `bytes 100000-${file.length - 1}/${file.length}` };
    response.writeHead(206, { ...range, etag: '"one"' }).end(Buffer.alloc(250_000));
  });
  assert.equal((await save()).kind, "saved");
  assert.ok((await readFile(path)).equals(file));
  assert.deepEqual(
    server.requests.map(({ headers }) => headers["range"]),
    [undefined, "bytes=100000-", undefined],
  );
});

test("a response that mayBeFile rejects does not touch the partial file", async t => {
  const { save, path } = await downloadFor(t, (request, response, number) => {
    if (number === 1) return interrupt(response, 100_000);
    if (number > 2) return serveFile(request, response);
    response.writeHead(200, { "x-bot-check": "yes" }).end("<html>Are you a person?</html>");
  });
  const mayBeFile = (headers: object) => !("x-bot-check" in headers);
  await save({ maxInterruptions: 1 });
  assert.equal((await save({ mayBeFile })).kind, "response");
  assert.equal((await stat(path)).size, 100_000);
  const saved = await save({ mayBeFile });
  assert.ok(saved.kind === "saved");
  assert.equal(saved.resumedBytes, 100_000);
});

test("a disk that cannot be written is a DownloadError that names the path", async t => {
  const { save } = await downloadFor(t, (request, response) => serveFile(request, response));
  const folder = temporaryFolder("download");
  await writeFile(join(folder, "file"), "not a folder");
  const path = join(folder, "file", "below");
  await assert.rejects(save({ path, record: resumeRecordBeside(join(folder, "x"), URL_OF_FILE) }), {
    code: "DOCSTOKG_DOWNLOAD",
    message: /^cannot write .*below: E/,
  });
});

test("after a mismatch whose next request is refused, a later call does not repeat the range", async t => {
  const { save, server, hub } = await downloadFor(t, (request, response, number) => {
    if (number === 1) return interrupt(response, 100_000);
    if (request.headers["range"] === undefined) return serveFile(request, response);
    response.writeHead(416, { "content-range": "bytes */10" }).end();
  });
  await save({ maxInterruptions: 1 });
  let requests = 0;
  const refused = save({
    send: headers => {
      requests += 1;
      if (requests === 2) throw new Error("rate limit");
      return hub.request(`${server.origin}/file`, { role: "artifact", headers });
    },
  });
  await assert.rejects(refused, { message: "rate limit" });
  assert.equal((await save()).kind, "saved");
  assert.deepEqual(
    server.requests.map(({ headers }) => headers["range"]),
    [undefined, "bytes=100000-", undefined],
  );
});

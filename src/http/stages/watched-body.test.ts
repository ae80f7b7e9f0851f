import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { assertNothingLeft, hubFor, only, recordEvents, serve, settles, until } from "../../../test/http/kit.ts";

test("a body that is longer than its Content-Length fails its call, whatever the body is, and frees its slot", async t => {
  const server = await serve(t, (request, response) => request.on("end", () => response.end("ok")).resume());
  const hub = await hubFor(t, { retry: false });
  const events = recordEvents(hub);
  const form = new FormData();
  form.append("name", "value");
  const bodies = ["abc", Buffer.from("abc"), new Blob(["abc"]), form, new Response("abc").body as ReadableStream];
  const isMismatch = (error: TypeError) =>
    (error.cause as NodeJS.ErrnoException).code === "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH";
  for (const body of bodies) {
    const init = { method: "PUT", body, headers: { "content-length": "2" }, duplex: "half" } as const;
    await assert.rejects(settles(hub.fetch(server.origin, init)), isMismatch);
    assertNothingLeft(hub);
  }
  assert.deepEqual(only(events, "breaker_failure"), [], "it is no failure of the host");
});

test("a body that has its Content-Length is sent, and its source is closed when the request is aborted", async t => {
  const received: string[] = [];
  const server = await serve(t, (request, response) => {
    request.setEncoding("utf8").on("data", chunk => received.push(chunk));
    request.on("end", () => response.end("ok"));
  });
  const hub = await hubFor(t, { retry: false });
  const headers = { "content-length": "4" };
  const send = async (body: AsyncIterable<unknown>, signal?: AbortSignal) => {
    const init = { method: "PUT", body: body as Readable, headers, ...(signal && { signal }) } as const;
    return (await hub.request(server.origin, init)).body.text();
  };
  async function* complete() {
    yield "ä";
    yield Buffer.from("cd");
  }
  assert.equal(await send(complete()), "ok");
  assert.equal(received.join(""), "äcd");

  let isClosed = false;
  async function* endless() {
    try {
      yield "a";
      await until(() => received.join("") === "äcda");
      controller.abort();
      yield "b";
    } finally {
      isClosed = true;
    }
  }
  const controller = new AbortController();
  await assert.rejects(send(endless(), controller.signal), { name: "AbortError" });
  await until(() => isClosed);

  async function* failing() {
    yield "a";
    throw new Error("the source has failed");
  }
  await assert.rejects(send(failing()), { message: "the source has failed" });
  assertNothingLeft(hub);
});

test("a body whose source fails is no failure of the host, although the error is one of the network", async t => {
  const server = await serve(t, (request, response) => request.on("end", () => response.end("ok")).resume());
  const hub = await hubFor(t, { retry: false });
  const events = recordEvents(hub);
  async function* failing() {
    yield "a";
    throw Object.assign(new Error("the source was reset"), { code: "ECONNRESET" });
  }
  const send = hub.request(server.origin, { method: "PUT", body: failing() as unknown as Readable });
  await assert.rejects(send, { message: "the source was reset" });
  const body = Readable.toWeb(Readable.from(failing())) as ReadableStream;
  await assert.rejects(hub.fetch(server.origin, { method: "PUT", body, duplex: "half" }));
  assert.deepEqual(only(events, "breaker_failure"), []);
  assert.equal(only(events, "http_attempt").length, 2);
  assertNothingLeft(hub);
});

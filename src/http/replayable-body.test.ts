import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { hubFor, serve } from "../../test/http/kit.ts";

const form = new FormData();
form.set("field", "value");
form.set("file", new Blob(["content"]), "name.txt");

/** The body, and what the server gets of it. */
const BODIES: Readonly<Record<string, readonly [body: NonNullable<RequestInit["body"]>, sent: RegExp, type: RegExp]>> =
  {
    string: ["text", /^text$/, /^text\/plain;charset=UTF-8$/],
    Uint8Array: [new TextEncoder().encode("bytes"), /^bytes$/, /^undefined$/],
    ArrayBuffer: [new Uint8Array([98]).buffer, /^b$/, /^undefined$/],
    Blob: [new Blob(["blob"], { type: "a/b" }), /^blob$/, /^a\/b$/],
    URLSearchParams: [new URLSearchParams({ a: "b" }), /^a=b$/, /^application\/x-www-form-urlencoded/],
    FormData: [form, /name="field".*value.*filename="name.txt".*content/s, /^multipart\/form-data; ?boundary=/],
  };

async function world(t: Parameters<typeof serve>[0]) {
  const received: { readonly body: string; readonly type: string }[] = [];
  const server = await serve(t, async (request, response, number) => {
    received.push({ body: await text(request), type: String(request.headers["content-type"]) });
    response.writeHead(number === 1 ? 503 : 200).end();
  });
  const hub = await hubFor(t, { retry: { attempts: 2, baseMs: 0 } });
  return { received, url: server.origin, hub };
}

for (const [name, [body, sent, type]] of Object.entries(BODIES))
  test(`an idempotent fetch with a ${name} as its body is retried with the same bytes`, async t => {
    const { received, url, hub } = await world(t);
    const { status } = await hub.fetch(url, { method: "POST", body, idempotent: true });
    assert.equal(status, 200);
    assert.equal(received.length, 2);
    assert.deepEqual(received[0], received[1]);
    assert.match(received[0]?.body ?? "", sent);
    assert.match(received[0]?.type ?? "", type);
    const boundary = /boundary=(.*)/.exec(received[0]?.type ?? "")?.[1];
    if (boundary !== undefined) assert.ok(received[0]?.body.startsWith(`--${boundary}`));
  });

test("the bytes are those at the time of the call", async t => {
  const { received, url, hub } = await world(t);
  const body = new TextEncoder().encode("before");
  const pending = hub.fetch(url, { method: "PUT", body, idempotent: true });
  body.fill(0);
  await pending;
  assert.deepEqual(
    received.map(each => each.body),
    ["before", "before"],
  );
});

test("a form, headers and a URL that the caller changes after the call are sent as they were", async t => {
  const { received, url, hub } = await world(t);
  const target = new URL(url);
  const params = new URLSearchParams({ page: "1" });
  const headers: Record<string, string> = { "content-type": "a/1" };
  const pending = hub.fetch(target, { method: "POST", body: params, headers, idempotent: true });
  params.set("page", "1000");
  headers["content-type"] = "a/1000";
  target.port = "1";
  await pending;
  assert.deepEqual(received, [
    { body: "page=1", type: "a/1" },
    { body: "page=1", type: "a/1" },
  ]);
});

test("the headers of a Request are sent with a body that replaces its own", async t => {
  const { received, url, hub } = await world(t);
  const request = new Request(url, { method: "POST", headers: { "content-type": "a/b" } });
  await hub.fetch(request, { body: "text", idempotent: true });
  assert.deepEqual(received[1], { body: "text", type: "a/b" });
});

test("a call whose body is still being read is sent although the hub is being closed", async t => {
  const { received, url, hub } = await world(t);
  const pending = hub.fetch(url, { method: "PUT", body: "text", idempotent: true });
  const closed = hub.close();
  assert.equal((await pending).status, 200);
  await closed;
  assert.equal(received.length, 2);
});

test("a call whose body is still being read is not sent after destroy", async t => {
  const { received, url, hub } = await world(t);
  const pending = hub.fetch(url, { method: "PUT", body: "text", idempotent: true });
  const refused = assert.rejects(pending, { name: "HubClosedError" });
  await hub.destroy();
  await refused;
  assert.equal(received.length, 0);
});

test("hub.with and the defaults of the hub mark calls of fetch as idempotent too", async t => {
  const { received, url, hub } = await world(t);
  const { status } = await hub.with({ idempotent: true }, () => hub.fetch(url, { method: "POST", body: "text" }));
  assert.deepEqual([status, received.length], [200, 2]);
});

for (const [name, options] of Object.entries({
  "a stream": { body: new Blob(["text"]).stream(), duplex: "half", idempotent: true },
  "a body that is not marked": { body: "text" },
}))
  test(`a fetch with ${name} is not retried`, async t => {
    const { received, url, hub } = await world(t);
    const { status } = await hub.fetch(url, { method: "POST", ...options } as Parameters<typeof hub.fetch>[1]);
    assert.deepEqual([status, received.map(({ body }) => body)], [503, ["text"]]);
  });

test("the body of a Request is not retried", async t => {
  const { received, url, hub } = await world(t);
  const { status } = await hub.fetch(new Request(url, { method: "POST", body: "text" }), { idempotent: true });
  assert.deepEqual([status, received.map(({ body }) => body)], [503, ["text"]]);
});

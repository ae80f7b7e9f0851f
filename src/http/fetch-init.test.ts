import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { hubFor, serve } from "../../test/http/kit.ts";

test("hub.fetch takes inherited options, such as the fields of a Request, as fetch does", async t => {
  const server = await serve(t, async (request, response) =>
    response.end(`${request.method} ${request.url} ${request.headers["x-a"]} ${await text(request)}`),
  );
  const hub = await hubFor(t);
  const request = new Request(`${server.origin}/old`, { method: "POST", headers: { "x-a": "1" }, body: "hello" });
  assert.equal(await (await hub.fetch(`${server.origin}/new`, request)).text(), "POST /new 1 hello");
  const inherited = Object.create({ method: "PUT", headers: { "x-a": "2" } });
  assert.equal(await (await hub.fetch(`${server.origin}/new`, inherited)).text(), "PUT /new 2 ");
  const plain = Object.assign(Object.create(null), { method: "DELETE", headers: { "x-a": "3" } });
  assert.equal(await (await hub.fetch(`${server.origin}/new`, plain)).text(), "DELETE /new 3 ");
});

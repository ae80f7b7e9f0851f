import assert from "node:assert/strict";
import { test } from "node:test";
import { assertNothingLeft, hubFor, serve, settles } from "../../test/http/kit.ts";

test("the query option is appended to the query of the URL", async t => {
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t);
  for (const path of ["/", "/?a=b"]) {
    for (const query of [{}, { c: "d" }]) await (await hub.request(`${server.origin}${path}`, { query })).body.text();
  }
  assert.deepEqual(
    server.requests.map(({ url }) => url),
    ["/", "/?c=d", "/?a=b", "/?a=b&c=d"],
  );
});

test("an upgrade whose caller cannot take the connection is refused, and nothing is sent", async t => {
  const server = await serve(t, (_, response) => {
    response.socket?.end("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n");
  });
  const hub = await hubFor(t);
  const { origin } = server;
  const refused = { code: "UND_ERR_INVALID_ARG", message: /use dispatcher\.upgrade or dispatcher\.connect$/ };
  await assert.rejects(settles(hub.request(origin, { upgrade: "chat" })), refused);
  const streamed = hub.dispatcher().stream({ origin, path: "/", method: "GET", upgrade: "chat" } as never, () => {
    throw new Error("there is no response");
  });
  await assert.rejects(settles(streamed), refused);
  assert.equal(server.requests.length, 0);
  assertNothingLeft(hub);
});

import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import {
  Agent,
  getGlobalDispatcher,
  setGlobalDispatcher,
  fetch as undiciFetch,
  request as undiciRequest,
} from "undici";
import { startProxy } from "../../../test/http/connect-proxy.ts";
import { hubFor, only, recordEvents, serve, tlsFixture, until } from "../../../test/http/kit.ts";

function collectWarnings(t: Parameters<typeof serve>[0]): Error[] {
  const warnings: Error[] = [];
  const listener = (warning: Error) => {
    if (warning.name === "DocstokgWarning") warnings.push(warning);
  };
  process.on("warning", listener);
  t.after(() => process.off("warning", listener));
  return warnings;
}

test("requests with a dispatcher of their own are reported once for each host, with one warning that shows the stack", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { cache: false });
  const events = recordEvents(hub);
  const warnings = collectWarnings(t);
  t.after(hub.install());
  const own = new Agent();
  t.after(() => own.close());
  async function sendPastTheHub(host: string) {
    const { body } = await undiciRequest(`http://${host}:${server.port}`, { dispatcher: own });
    await body.text();
  }
  await sendPastTheHub("127.0.0.1");
  await sendPastTheHub("127.0.0.1");
  await sendPastTheHub("localhost");
  await until(() => warnings.length > 0);
  assert.deepEqual(
    only(events, "bypassed").map(({ host, client }) => ({ host, client })),
    [
      { host: "127.0.0.1", client: "undici" },
      { host: "localhost", client: "undici" },
    ],
  );
  assert.equal(warnings.length, 1);
  assert.match(
    warnings[0]?.message ?? "",
    /^a request to 127\.0\.0\.1 bypasses the installed hub, so no limit applies/,
  );
  assert.match((warnings[0] as Error & { detail?: string }).detail ?? "", /sendPastTheHub/);
});

test("fetch after another global dispatcher was set is reported", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { cache: false });
  const events = recordEvents(hub);
  collectWarnings(t);
  t.after(hub.install());
  const before = getGlobalDispatcher();
  const own = new Agent();
  setGlobalDispatcher(own);
  t.after(() => setGlobalDispatcher(before));
  t.after(() => own.close());
  await (await undiciFetch(server.origin)).text();
  assert.deepEqual(
    only(events, "bypassed").map(({ host }) => host),
    ["127.0.0.1"],
  );
});

test("requests through the hub are not reported, whatever the client", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { cache: false });
  const other = await hubFor(t, { cache: false });
  const events = recordEvents(hub);
  const warnings = collectWarnings(t);
  t.after(hub.install());
  await Promise.all([
    ...Array.from({ length: 20 }, async () => (await fetch(server.origin)).text()),
    (await hub.request(server.origin)).body.text(),
    (await other.fetch(server.origin)).text(),
    (await undiciRequest(server.origin)).body.text(),
    new Promise<string>((resolve, reject) =>
      http.get(server.origin, { agent: false }, response => text(response).then(resolve, reject)),
    ),
  ]);
  assert.deepEqual(only(events, "bypassed"), []);
  assert.deepEqual(warnings, []);
});

test("behind a proxy only the requests of other dispatchers are reported", async t => {
  const { key, cert } = tlsFixture();
  const secure = https.createServer({ key, cert }, (_, response) => response.end("secure")).listen(0, "127.0.0.1");
  await once(secure, "listening");
  t.after(() => secure.close());
  t.after(() => secure.closeAllConnections());
  const plain = await serve(t, (_, response) => response.end("direct"));
  const { url } = await startProxy(t, (secure.address() as AddressInfo).port);
  const hub = await hubFor(t, {
    env: { HTTP_PROXY: url, HTTPS_PROXY: url, NO_PROXY: "127.0.0.1" },
    network: { proxy: "env", tls: { ca: cert }, connectTo: [`mapped.example::127.0.0.1:${plain.port}`] },
    cache: false,
  });
  const events = recordEvents(hub);
  collectWarnings(t);
  t.after(hub.install());
  const origins = ["https://example.org", "http://example.org", plain.origin, "http://mapped.example"];
  const answers = await Promise.all(origins.map(async origin => (await fetch(origin)).text()));
  assert.deepEqual(answers, ["secure", "by the proxy", "direct", "direct"]);
  assert.deepEqual(only(events, "bypassed"), []);
  const own = new Agent();
  t.after(() => own.close());
  await (await undiciFetch(`http://localhost:${plain.port}`, { dispatcher: own })).text();
  assert.deepEqual(
    only(events, "bypassed").map(({ host }) => host),
    ["localhost"],
  );
});

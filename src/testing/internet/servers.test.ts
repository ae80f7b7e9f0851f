import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import { test } from "node:test";
import { Agent } from "undici";
import { internetFor, unlimitedClient } from "../../../test/testing/internet-kit.ts";

test("the servers support HTTP/1.1 and HTTP/2 over TLS", async t => {
  const internet = await internetFor(t);
  const { ca } = internet.network.tls;
  const port = internet.network.connectTo[0]?.split(":").at(-1);
  for (const allowH2 of [true, false]) {
    const agent = new Agent({ allowH2, connect: { ca, servername: "doi.org" } });
    t.after(() => agent.destroy());
    const headers = { host: "doi.org" };
    const { statusCode, body } = await agent.request({
      origin: `https://127.0.0.1:${port}`,
      path: "/nonsense",
      method: "GET",
      headers,
    });
    await body.dump();
    assert.equal(statusCode, 400);
  }
});

test("sequential requests on one connection never count as concurrent", async t => {
  const internet = await internetFor(t);
  const ask = unlimitedClient(t, internet);
  const { copies } = internet.works.find(({ scenario }) => scenario === "publisher") ?? assert.fail();
  // The public pool of Crossref permits one concurrent request; the response is large enough for several chunks.
  for (let call = 0; call < 5; call += 1) {
    assert.equal((await ask("https://api.crossref.org/works/10.5555/x")).status, 404);
    assert.equal((await ask(copies[0]?.url ?? "")).status, 200);
  }
  const [limit] = (await internet.ledger()).hosts["api.crossref.org"]?.limits ?? [];
  assert.equal(limit?.mostConcurrent, 1);
});

test("a client that resets its stream causes no fault", async t => {
  const internet = await internetFor(t);
  const port = internet.network.connectTo[0]?.split(":").at(-1);
  for (const code of [constants.NGHTTP2_INTERNAL_ERROR, constants.NGHTTP2_CANCEL, constants.NGHTTP2_PROTOCOL_ERROR]) {
    const session = connectHttp2(`https://127.0.0.1:${port}`, {
      ca: internet.network.tls.ca,
      servername: "files.ontologies.example",
    });
    // The server is permitted to close the whole connection then.
    session.on("error", () => session.destroy());
    t.after(() => session.destroy());
    const stream = session.request({ ":path": "/titan.owl", ":authority": "files.ontologies.example" });
    const closed = new Promise(done => stream.on("error", () => stream.destroy()).on("close", done));
    await once(stream, "data");
    stream.close(code);
    await closed;
  }
  const { faults, served } = await internet.ledger();
  assert.deepEqual({ faults, served }, { faults: [], served: 3 });
});

test("request bodies reach the service", async t => {
  const internet = await internetFor(t);
  const ask = unlimitedClient(t, internet);
  const { ids } = internet.works.find(({ scenario }) => scenario === "publisher") ?? assert.fail();
  const body = JSON.stringify({ ids: [`DOI:${ids.doi}`, "DOI:10.5555/nothing"] });
  const { bytes } = await ask("https://api.semanticscholar.org/graph/v1/paper/batch?fields=externalIds", {
    method: "POST",
    body,
  });
  const [found, missing] = JSON.parse(bytes.toString());
  assert.deepEqual([found.externalIds.DOI, missing], [ids.doi, null]);
});

test("a request to an unknown host gets status 421", async t => {
  const internet = await internetFor(t);
  const { status } = await unlimitedClient(t, internet)("http://nowhere.example/");
  assert.equal(status, 421);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { hubFor, serve } from "../../test/http/kit.ts";
import { internetFor } from "../../test/ontology/kit.ts";
import { RedirectFollower } from "./redirect-follower.ts";

test("http is replaced by https if the host supports it, with one probe for each host", async t => {
  const internet = await internetFor(t);
  const hub = await hubFor(t, { network: internet.network });
  const follower = new RedirectFollower(hub);
  const call = { role: "artifact", headers: {} } as const;
  const { response, url } = await follower.follow("http://purl.obolibrary.org/obo/alder.owl", call);
  await response.body.dump();
  assert.equal(url, "https://ftp.ebi.ac.uk/pub/databases/alder/ontology/alder.owl");
  const again = await follower.follow("http://purl.obolibrary.org/obo/kelp.owl", call);
  await again.response.body.dump();
  // One HEAD request as probe, and two files.
  assert.equal((await internet.ledger()).hosts["purl.obolibrary.org"]?.requests, 3);

  const plain = await serve(t, (_request, answer) => answer.end("plain"));
  const connectTo = [`plain.example:80:127.0.0.1:${plain.port}`, "plain.example:443:127.0.0.1:1"];
  const elsewhere = new RedirectFollower(await hubFor(t, { network: { connectTo }, retry: false }));
  const found = await elsewhere.follow("http://plain.example/x", call);
  assert.equal(await found.response.body.text(), "plain");
  assert.equal(found.url, "http://plain.example/x");
});

test("a file that is missing over https is requested over http", async t => {
  const internet = await internetFor(t);
  const plain = await serve(t, (_request, answer) => answer.end("plain"));
  const connectTo = [`purl.obolibrary.org:80:127.0.0.1:${plain.port}`, ...(internet.network.connectTo ?? [])];
  const hub = await hubFor(t, { network: { ...internet.network, connectTo } });
  const found = await new RedirectFollower(hub).follow("http://purl.obolibrary.org/obo/nowhere.owl", { headers: {} });
  assert.equal(await found.response.body.text(), "plain");
  assert.equal(found.url, "http://purl.obolibrary.org/obo/nowhere.owl");
});

test("a loop, too many redirects and other schemes are errors", async t => {
  const server = await serve(t, (request, response) => {
    const { url = "" } = request;
    const number = Number(/\d+/.exec(url)?.[0] ?? 0);
    const targets: Record<string, string> = {
      "/loop": "/loop",
      "/fragment": `/fragment#${server.requests.length}`,
      "/file": "file:///etc/passwd",
    };
    const location = targets[url] ?? `/${number + 1}`;
    response.writeHead(302, { location }).end("moved");
  });
  const follower = new RedirectFollower(await hubFor(t));
  const follow = (path: string) => follower.follow(`${server.origin}${path}`, { headers: {} });
  for (const path of ["/loop", "/fragment"]) {
    await assert.rejects(follow(path), /redirect loop: the URL at 127.0.0.1:\d+ was already visited/);
  }
  await assert.rejects(follow("/0"), /more than 10 redirects; the last one leads to/);
  await assert.rejects(follow("/file"), /redirects to a URL that is not http or https/);
});

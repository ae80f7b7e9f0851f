import assert from "node:assert/strict";
import { test } from "node:test";
import { hubFor, serve } from "../../test/http/kit.ts";
import { internetFor } from "../../test/ontology/kit.ts";
import { RedirectFollower } from "./redirect-follower.ts";

test("plain http is left where https works, once found out for each host, and kept where it does not", async t => {
  const internet = await internetFor(t);
  const hub = await hubFor(t, { network: internet.network });
  const follower = new RedirectFollower(hub);
  const call = { role: "artifact", headers: {} } as const;
  const { response, url } = await follower.follow("http://purl.obolibrary.org/obo/alder.owl", call);
  await response.body.dump();
  assert.equal(url, "https://ftp.ebi.ac.uk/pub/databases/alder/ontology/alder.owl");
  const again = await follower.follow("http://purl.obolibrary.org/obo/kelp.owl", call);
  await again.response.body.dump();
  // One HEAD to find out, and two files asked for.
  assert.equal((await internet.ledger()).hosts["purl.obolibrary.org"]?.requests, 3);

  const plain = await serve(t, (_request, answer) => answer.end("plain"));
  const connectTo = [`plain.example:80:127.0.0.1:${plain.port}`, "plain.example:443:127.0.0.1:1"];
  const elsewhere = new RedirectFollower(await hubFor(t, { network: { connectTo }, retry: false }));
  const found = await elsewhere.follow("http://plain.example/x", call);
  assert.equal(await found.response.body.text(), "plain");
  assert.equal(found.url, "http://plain.example/x");
});

test("circles, endless chains and other schemes lead nowhere, and say so", async t => {
  const server = await serve(t, (request, response) => {
    const number = Number(/\d+/.exec(request.url ?? "")?.[0] ?? 0);
    const location =
      request.url === "/circle" ? "/circle" : request.url === "/file" ? "file:///etc/passwd" : `/${number + 1}`;
    response.writeHead(302, { location }).end("moved");
  });
  const follower = new RedirectFollower(await hubFor(t));
  const follow = (path: string) => follower.follow(`${server.origin}${path}`, { headers: {} });
  await assert.rejects(follow("/circle"), /redirects in a circle/);
  await assert.rejects(follow("/0"), /more than 10 redirects/);
  await assert.rejects(follow("/file"), /redirects to what is no http or https address/);
});

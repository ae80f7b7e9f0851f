import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { identify } from "../../src/harvest/identifiers/identifiers.ts";
import { landingPage } from "../../src/harvest/resolvers/landing-page.ts";
import { hubFor, serve } from "../http/kit.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { complete, pdf, runFor } from "./kit.ts";

const SECRETS = ["Sesame1", "Sesame2", "Sesame3", "Sesame4", "Sesame5", "Sesame6", "Sesame7", "Sesame8"];

function everythingIn(folder: string): readonly (readonly [path: string, bytes: Buffer])[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map(name => join(folder, name))
    .filter(path => statSync(path).isFile())
    .map(path => [path, readFileSync(path)] as const);
}

function workAt(url: string) {
  const named = identify(url);
  assert.ok("work" in named);
  return named.work;
}

test("after a run no file content and no file name contains a secret of a URL, and the same list continues", async t => {
  let isDown = false;
  const server = await serve(t, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
    if (pathname === "/robots.txt") response.writeHead(404).end();
    else if (isDown || pathname === "/gone") response.writeHead(404).end("no");
    else if (pathname === "/signed")
      response
        .writeHead(302, { location: "/file.pdf?Signature=Sesame5&Policy=x", "set-cookie": "session=Sesame7; Path=/" })
        .end();
    else if (pathname === "/page")
      response
        .setHeader("content-type", "text/html")
        .end('<html><meta name="citation_pdf_url" content="/linked.pdf?ticket=Sesame6"></html>');
    else response.setHeader("content-type", "application/pdf").end(pdf(`${pathname}${searchParams.size}`));
  });
  const folder = temporaryFolder("harvest");
  const urls = [
    ...["/a.pdf?token=Sesame1", "/b?code=Sesame2", "/gone?sid=Sesame3", "/signed?jwt=Sesame4", "/page?x=1"],
    "/nested?of=https%3A%2F%2Fexample.org%2F%3Ftoken%3DSesame8",
  ];
  const works = urls.map(path => workAt(`${server.origin}${path}`));
  const options = { hub: await hubFor(t), resolvers: [landingPage] };
  const first = await runFor(t, folder, options);
  await complete(first, works);
  assert.equal([...first.settled.values()].filter(reason => reason === "ok").length, 5);
  const nested = server.requests.find(({ url }) => url?.startsWith("/nested"));
  assert.match(nested?.url ?? "", /Sesame8/, "the request has the secret of the nested URL");
  for (const [path, bytes] of everythingIn(folder))
    for (const secret of SECRETS) assert.ok(!bytes.includes(secret) && !path.includes(secret), `${secret} in ${path}`);

  // The same list is recognised; without the list the URL is not known.
  isDown = true;
  const again = await runFor(t, folder, options);
  const counts = await again.run.addWorks(works);
  assert.deepEqual(counts, { pending: 0, present: 5, failed: 1, failedIds: [3] });
  await again.run.close("ended");
  const retried = await runFor(t, folder, options);
  await retried.run.addUnfinished({});
  retried.run.pipeline.inputEnded();
  await retried.run.pipeline.run();
  assert.deepEqual([...retried.settled.values()], ["url-not-stored"]);
});

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { type Project, projectAt } from "../../test/ontology/kit.ts";
import { outcomes } from "../../test/ontology/outcomes.ts";
import { FakeTime } from "../testing/fake-time.ts";

const OBO = "format-version: 1.2\nontology: x\n\n[Term]\nid: X:1\nname: one\n";

function manifestIn({ folder }: Project): Record<string, unknown> {
  const [version = ""] = readdirSync(join(folder, "ontologies", "x"));
  return JSON.parse(readFileSync(join(folder, "ontologies", "x", version, "manifest.json"), "utf8"));
}

test("credentials in a redirect URL are neither sent nor written to the manifest", async t => {
  const { project, server } = await projectAt(t, (request, response) => {
    const location = `http://bob:hunter2@${request.headers.host}/y.obo?sig=hunter2`;
    if (request.url === "/x.obo") response.writeHead(302, { location }).end();
    else response.end(OBO);
  });
  assert.deepEqual(outcomes(await project.pull()), { x: "fetched" });
  assert.equal(manifestIn(project)["final_url"], `${server.origin}/y.obo`);
  assert.equal(server.requests[1]?.headers.authorization, undefined);
});

test("control characters in an error response are removed from the message", async t => {
  const { project } = await projectAt(t, (_, response) => {
    response.writeHead(404).end("no \u001b]0;owned\u0007\u001b[2J\u009b2J such file");
  });
  const [result] = await project.pull();
  assert.ok(result?.outcome === "failed");
  assert.match(result.message, /returned status 404 \(no .* such file\)$/);
  assert.doesNotMatch(result.message, /\p{Cc}/u);
});

test("a version whose checked_at is in the future is checked again", async t => {
  let body = OBO;
  const { project } = await projectAt(t, (_, response) => response.end(body));
  const ahead = new FakeTime({ wallMs: Date.now() + 10 * 365 * 86_400_000 });
  assert.deepEqual(outcomes(await project.pull({ time: ahead })), { x: "fetched" });
  body = OBO.replace("one", "two");
  assert.deepEqual(outcomes(await project.pull()), { x: "fetched" });
});

test("a file from the address of its version does not hide a newer file at the URL of the source", async t => {
  const owl = (version: string, origin: string) =>
    `<${origin}/x> a <http://www.w3.org/2002/07/owl#Ontology> ; <http://www.w3.org/2002/07/owl#versionIRI> ` +
    `<${origin}/x/${version}/x.ttl> . <${origin}/x#A> a <http://www.w3.org/2002/07/owl#Class> .`;
  let newest = "2026-01-01";
  // The server has copied the old release to its own address after the new one was published.
  const modified = {
    "/x.obo": "Tue, 10 Feb 2026 00:00:00 GMT",
    "/x/2026-01-01/x.ttl": "Wed, 01 Apr 2026 00:00:00 GMT",
  };
  const { project, server } = await projectAt(t, ({ url = "", headers }, response) => {
    const date = Object.entries(modified).find(([path]) => path === url)?.[1] ?? "";
    const since = Date.parse(headers["if-modified-since"] ?? "");
    if (since >= Date.parse(date)) response.writeHead(304).end();
    else
      response
        .writeHead(200, { "last-modified": date })
        .end(owl(url === "/x.obo" ? newest : "2026-01-01", server.origin));
  });
  assert.deepEqual(outcomes(await project.pull()), { x: "fetched" });
  newest = "2026-02-10";
  await rm(join(project.folder, "ontologies"), { recursive: true });
  assert.deepEqual(outcomes(await project.pull({ frozen: true })), { x: "fetched" });
  assert.equal(server.requests.at(-1)?.url, "/x/2026-01-01/x.ttl");
  assert.equal(manifestIn(project)["last_modified"], null);
  const [pulled] = await project.pull();
  assert.ok(pulled?.outcome === "fetched");
  assert.equal(pulled.stored.manifest.version, "2026-02-10");
});

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { serve } from "../../test/http/kit.ts";
import { projectFor } from "../../test/ontology/kit.ts";
import { outcomes } from "../../test/ontology/outcomes.ts";
import { makeZip } from "../testing/internet/zip.ts";

const obo = (version: string) =>
  `format-version: 1.2\ndata-version: ${version}\nontology: x\n\n[Term]\nid: X:1\nname: one\n`;

/** A server that has one file, version 1.0, with an ETag at every address, and a project that has pulled it. */
async function pulledProject(t: TestContext) {
  const server = await serve(t, (request, response) => {
    const isKnown = request.headers["if-none-match"] === '"v1"';
    response.writeHead(isKnown ? 304 : 200, { etag: '"v1"' }).end(isKnown ? "" : obo("1.0"));
  });
  const sources = (pins = "", path = "/x.obo") =>
    `allow_private: true\nsources:\n  x: { resolver: direct, extras: { url: "${server.origin}${path}" }${pins} }\n`;
  const project = await projectFor({ network: {} }, sources());
  assert.deepEqual(outcomes(await project.pull()), { x: "fetched" });
  const lockedSha256 = async (): Promise<string> =>
    JSON.parse(await readFile(join(project.folder, "ontologies.lock.json"), "utf8")).ontologies.x.sha256;
  return { server, sources, project, lockedSha256 };
}

test("a stored version that does not have the pinned version or hash is not confirmed by status 304", async t => {
  const { project, sources, lockedSha256 } = await pulledProject(t);
  const before = await lockedSha256();
  await project.write(sources(', version: "2.0"'));
  assert.match(outcomes(await project.pull())["x"] ?? "", /has version 1\.0, but version 2\.0 is pinned/);
  await project.write(sources(`, sha256: "${"ab".repeat(32)}"`));
  assert.match(outcomes(await project.pull())["x"] ?? "", /sha256 differs from the pinned one/);
  assert.equal(await lockedSha256(), before);
  await project.write(sources());
  assert.deepEqual(outcomes(await project.pull()), { x: "unchanged" });
});

test("a stored file of the pinned version is kept only if its URL and its format are those of the source", async t => {
  const { server, project, sources } = await pulledProject(t);
  await project.write(sources(', version: "1.0"'));
  assert.deepEqual(outcomes(await project.pull()), { x: "kept" });
  const before = server.requests.length;
  await project.write(sources(', version: "1.0"', "/other.obo"));
  assert.deepEqual(outcomes(await project.pull()), { x: "fetched" });
  assert.equal(server.requests.length, before + 1);
  await project.write(sources(', version: "1.0", target_formats: [owl]'));
  assert.match(outcomes(await project.pull())["x"] ?? "", /format is obo, wanted owl/);
});

test("a stored file of an archive is not kept if the source names another file of the archive", async t => {
  const zip = makeZip({ "a.obo": Buffer.from(obo("1.0")), "b.obo": Buffer.from(obo("1.0").replace("one", "two")) });
  const server = await serve(t, (request, response) => {
    const isKnown = request.headers["if-none-match"] === '"v1"';
    response.writeHead(isKnown ? 304 : 200, { etag: '"v1"' }).end(isKnown ? "" : zip);
  });
  const sources = (member: string, pins = "") =>
    `allow_private: true\nsources:\n  x: { resolver: direct, extras: { url: "${server.origin}/x.zip", member: ${member} }${pins} }\n`;
  const project = await projectFor({ network: {} }, sources("a.obo"));
  const pulledText = async () => {
    const [result] = await project.pull();
    assert.ok(result !== undefined && result.outcome !== "failed", JSON.stringify(result));
    return readFile(result.stored.path, "utf8");
  };
  assert.match(await pulledText(), /name: one/);
  await project.write(sources("b.obo"));
  assert.match(await pulledText(), /name: two/);
  await project.write(sources("a.obo", ', version: "1.0"'));
  assert.match(await pulledText(), /name: one/);
});

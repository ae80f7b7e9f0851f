import assert from "node:assert/strict";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { projectAt } from "../../test/ontology/kit.ts";
import { outcomes } from "../../test/ontology/outcomes.ts";
import { ImportClosure } from "./import-closure.ts";

const irisOf = (count: number, from = 0) => Array.from({ length: count }, (_, index) => `urn:import:${from + index}`);

test("a pull reports the imports beyond the limit as a failure", async t => {
  const imports = irisOf(1003)
    .map(iri => `import: ${iri}\n`)
    .join("");
  const { project, server } = await projectAt(t, (_, response) =>
    response.end(`format-version: 1.2\nontology: x\n${imports}\n[Term]\nid: X:1\nname: one\n`),
  );
  const source = `resolver: direct, imports: true, extras: { url: "${server.origin}/x.obo" }`;
  await project.write(`allow_private: true\nsources:\n  x: { ${source} }\n`);
  const reported: string[] = [];
  const results = await project.pull({ onResult: ({ id }) => reported.push(id) });
  const [first, ...imported] = results;
  assert.equal(first?.outcome, "fetched");
  // The imports are no web addresses, so that each of them fails without a request.
  assert.equal(imported.length, 1001);
  assert.deepEqual(
    reported,
    results.map(({ id }) => id),
  );
  const last = imported.at(-1);
  assert.ok(last?.outcome === "failed");
  assert.equal(last.message, "not fetched, nor 2 other imports: a pull fetches at most 1000 imported files");
  assert.deepEqual(last.importedBy, ["x"]);
  assert.equal(new Set(results.map(({ id }) => id)).size, results.length);
});

test("imports of known files do not count towards the limit, and a dropped import counts once", () => {
  const closure = new ImportClosure();
  for (const [index, iri] of irisOf(500).entries()) closure.provide(`source${index}`, [iri]);
  assert.equal(closure.require("a", irisOf(1499)).length, 999);
  assert.equal(closure.skipped(), undefined);
  assert.equal(closure.require("b", irisOf(3, 1499)).length, 1);
  assert.equal(closure.require("c", irisOf(2, 1500)).length, 0);
  assert.deepEqual([closure.skipped()?.count, closure.skipped()?.importers], [2, ["b", "c"]]);
});

test("an import that is written with a fragment or in another case is the same file", () => {
  const closure = new ImportClosure();
  const sources = closure.require("a", ["http://h.example/x", "http://h.example/x#", "HTTP://H.example/x"]);
  assert.deepEqual(
    sources.map(({ extras }) => extras["url"]),
    ["http://h.example/x"],
  );
  assert.equal(closure.require("b", ["http://h.example/x#"]).length, 0);
  assert.deepEqual(closure.importersOf(sources[0]?.id ?? ""), ["a", "b"]);
});

test("a source with imports is parsed completely, whatever the check of the other files is", async t => {
  const { project, server } = await projectAt(t, (request, response) => {
    const isKnown = request.headers["if-none-match"] === '"v1"';
    const name = (request.url ?? "").slice(1);
    const owl = "http://www.w3.org/2002/07/owl#";
    const imports = name === "x" ? `; <${owl}imports> <${server.origin}/y>` : "";
    const text = `<http://a/${name}> a <${owl}Ontology> ${imports} ; <${owl}versionInfo> "1.0" .\n<http://a/A> a <${owl}Class> .\n`;
    response.writeHead(isKnown ? 304 : 200, { etag: '"v1"' }).end(isKnown ? "" : text);
  });
  const pull = async (more: string) => {
    const source = `resolver: direct, extras: { url: "${server.origin}/x" }${more}`;
    await project.write(`allow_private: true\ncheck: end\nsources:\n  x: { ${source} }\n`);
    const [x, ...others] = await project.pull();
    assert.ok(x !== undefined && x.outcome !== "failed", JSON.stringify(x));
    return { outcome: x.outcome, depth: x.stored.manifest.checks.depth, others: others.map(({ outcome }) => outcome) };
  };
  assert.deepEqual(await pull(""), { outcome: "fetched", depth: "end", others: [] });
  // The stored file was not parsed completely, so its imports are not known.
  assert.deepEqual(await pull(", imports: true"), { outcome: "fetched", depth: "full", others: ["fetched"] });
  assert.deepEqual(await pull(", imports: true"), { outcome: "unchanged", depth: "full", others: ["unchanged"] });
  assert.deepEqual(await pull(', version: "1.0"'), { outcome: "kept", depth: "full", others: [] });
  await rm(join(project.folder, "ontologies"), { recursive: true });
  assert.deepEqual(await pull(', version: "1.0"'), { outcome: "fetched", depth: "end", others: [] });
  assert.deepEqual(await pull(', version: "1.0", imports: true'), {
    outcome: "fetched",
    depth: "full",
    others: ["fetched"],
  });
});

test("the imports of a file whose statements are not known stay in the lockfile", async t => {
  const owl = "http://www.w3.org/2002/07/owl#";
  let context: unknown = { owl };
  const { project, server } = await projectAt(t, (request, response) => {
    const imports = request.url === "/x" ? { "owl:imports": { "@id": `${server.origin}/y` } } : {};
    const id = `http://a${request.url}`;
    response.end(JSON.stringify({ "@context": context, "@id": id, "@type": "owl:Ontology", ...imports }));
  });
  const source = `resolver: direct, imports: true, extras: { url: "${server.origin}/x" }`;
  await project.write(`allow_private: true\nsources:\n  x: { ${source} }\n`);
  const lockedIds = async () => {
    const lock = JSON.parse(await readFile(join(project.folder, "ontologies.lock.json"), "utf8"));
    return Object.keys(lock.ontologies);
  };
  assert.deepEqual(outcomes(await project.pull())["x"], "fetched");
  const before = await lockedIds();
  assert.equal(before.length, 2);
  context = "https://unknown.example/context.jsonld";
  assert.deepEqual(outcomes(await project.pull()), { x: "fetched" });
  assert.deepEqual(await lockedIds(), before);
});

test("a file whose statements are not known stays an importer of what another file imports too", async t => {
  const contexts: Record<string, unknown> = {};
  const { project, server } = await projectAt(t, ({ url = "" }, response) => {
    const imports = url === "/y" ? {} : { "owl:imports": { "@id": `${server.origin}/y` } };
    const context = contexts[url] ?? { owl: "http://www.w3.org/2002/07/owl#" };
    response.end(JSON.stringify({ "@context": context, "@id": `http://a${url}`, "@type": "owl:Ontology", ...imports }));
  });
  const source = (path: string) => `{ resolver: direct, imports: true, extras: { url: "${server.origin}${path}" } }`;
  await project.write(`allow_private: true\nsources:\n  x: ${source("/x")}\n  z: ${source("/z")}\n`);
  const importers = async () => {
    const lock = JSON.parse(await readFile(join(project.folder, "ontologies.lock.json"), "utf8"));
    return Object.values<{ imported_by?: readonly string[] }>(lock.ontologies).flatMap(
      entry => entry.imported_by ?? [],
    );
  };
  await project.pull();
  assert.deepEqual(await importers(), ["x", "z"]);
  contexts["/x"] = "https://unknown.example/context.jsonld";
  await project.pull();
  assert.deepEqual(await importers(), ["x", "z"]);
});

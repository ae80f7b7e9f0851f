/** Pins, mirrors, changed releases, imports and the commands on stored versions, with a server of files. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ontofetch } from "../../src/cli/ontofetch.ts";
import { runIn } from "../cli/kit.ts";
import { serve } from "../http/kit.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const OWL = "http://www.w3.org/2002/07/owl#";

/** An OBO file with so many terms. */
function release(version: string, terms: number, more = ""): string {
  const stanzas = Array.from(
    { length: terms },
    (_, index) => `\n[Term]\nid: X:${index + 1}\nname: term ${index + 1}\n`,
  );
  return `format-version: 1.4\ndata-version: ${version}\nontology: x\n${stanzas.join("")}${more}`;
}

/** A server whose files a test changes, a sources.yaml, and the program. */
async function setUp(t: TestContext, sources: (origin: string) => string) {
  const folder = temporaryFolder("ontofetch");
  const files = new Map<string, string>();
  const server = await serve(t, (request, response) => {
    const content = files.get(request.url ?? "");
    if (content === undefined) response.writeHead(404).end("not here");
    else response.writeHead(200, { "content-type": "text/plain" }).end(request.method === "HEAD" ? "" : content);
  });
  const file = join(folder, "sources.yaml");
  const write = (text: string) => writeFile(file, `allow_private: true\n${text}`);
  await write(sources(server.origin));
  const run = (command: string) => runIn(ontofetch, [...command.split(" "), "--sources", file]);
  const lock = async () => JSON.parse(await readFile(join(folder, "ontologies.lock.json"), "utf8")).ontologies;
  return { folder, files, server, run, lock, write, store: join(folder, "ontologies") };
}

const direct =
  (path: string, more = "") =>
  (origin: string) =>
    `sources:\n  x: { resolver: direct, extras: { url: "${origin}${path}" }${more} }\n`;

test("bytes that change under one version fail until they are accepted", async t => {
  const { files, run, store } = await setUp(t, direct("/x.obo"));
  files.set("/x.obo", release("2026-01-01", 10));
  assert.equal((await run("pull")).exitCode, 0);
  files.set("/x.obo", release("2026-01-01", 11));
  const refused = await run("pull");
  assert.equal(refused.exitCode, 1);
  assert.match(
    refused.stderr,
    /^x: version 2026-01-01 was published again with other bytes: sha256 .*\(--accept stores both\)\n$/,
  );
  assert.deepEqual(await readdir(join(store, "x")), ["2026-01-01"]);
  assert.equal((await run("pull --accept")).exitCode, 0);
  assert.equal((await readdir(join(store, "x"))).length, 2);
});

test("a release that loses more than a tenth of its terms fails until it is accepted", async t => {
  const { files, run, lock } = await setUp(t, direct("/x.obo"));
  files.set("/x.obo", release("2026-01-01", 100));
  await run("pull");
  files.set("/x.obo", release("2026-02-01", 89));
  const refused = await run("pull");
  assert.equal(refused.exitCode, 1);
  assert.match(refused.stderr, /version 2026-02-01 has 89 terms, 11 % fewer than the 100 of version 2026-01-01/);
  assert.equal((await lock()).x.version, "2026-01-01");
  assert.equal((await run("pull --accept")).exitCode, 0);
  assert.equal((await lock()).x.version, "2026-02-01");
});

test("lost terms are found where each release has a URL of its own", async t => {
  const portal = (origin: string) => `sources:\n  x: { resolver: bioportal, extras: { base: "${origin}" } }\n`;
  const { files, run, lock } = await setUp(t, portal);
  const publish = (submissionId: number, terms: number) => {
    const submission = { hasOntologyLanguage: "OBO", submissionId, version: `${submissionId}.0` };
    files.set("/ontologies/X/latest_submission?include=all", JSON.stringify(submission));
    files.set(`/ontologies/X/submissions/${submissionId}/download`, release(`${submissionId}.0`, terms));
  };
  publish(1, 100);
  const first = await run("pull");
  assert.equal(first.exitCode, 0, first.stderr + first.stdout);
  publish(2, 3);
  assert.match((await run("pull")).stderr, /version 2\.0 has 3 terms, 97 % fewer than the 100 of version 1\.0/);
  assert.equal((await lock()).x.version, "1.0");
  assert.equal((await run("pull --accept")).exitCode, 0);
});

test("a pinned version is fetched from its own address, and later pulls send no request", async t => {
  const { files, run, server } = await setUp(t, direct("/releases/{version}/x.obo"));
  files.set("/releases/2026-01-01/x.obo", release("2026-01-01", 2));
  files.set("/releases/2026-02-01/x.obo", release("2026-01-01", 2));
  assert.match((await run("pull x")).stderr, /contains \{version\}, but the source has no version/);
  assert.equal((await run("pull x@2026-01-01")).stdout.split(",")[0], "x: fetched");
  const before = server.requests.length;
  assert.match((await run("pull x@2026-01-01")).stdout, /^x: already stored, version 2026-01-01/);
  assert.equal(server.requests.length, before);
  const wrong = await run("pull x@2026-02-01");
  assert.match(wrong.stderr, /the file has version 2026-01-01, but version 2026-02-01 is pinned/);
  assert.match((await run("pull x@")).stderr, /no version after "@"/);
});

test("a pinned hash refuses every other file", async t => {
  const { files, run } = await setUp(t, direct("/x.obo", `, sha256: "${"0".repeat(64)}"`));
  files.set("/x.obo", release("1", 2));
  assert.match((await run("pull")).stderr, /sha256 differs from the pinned one/);
});

test("a frozen pull asks the address of the version first, then the URL, then mirrors", async t => {
  const { files, folder, run, store, server, write } = await setUp(t, direct("/x.obo"));
  const text = release("2026-01-01", 3);
  files.set("/x.obo", text);
  await run("pull");
  files.set("/x.obo", release("2026-02-01", 3));
  await cp(store, join(folder, "mirror"), { recursive: true });
  await rm(store, { recursive: true });
  assert.match((await run("pull --frozen")).stderr, /sha256 differs from the lockfile/);
  await write(direct("/x.obo", ", mirrors: [nowhere, mirror]")(server.origin));
  const mirrored = await run("pull --frozen");
  assert.equal(mirrored.exitCode, 0, mirrored.stderr);
  assert.equal(await readFile(join(store, "x", "2026-01-01", "x.obo"), "utf8"), text);

  // A file whose version has an address of its own.
  const owl = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:owl="${OWL}"><owl:Ontology rdf:about="http://a/x"><owl:versionIRI rdf:resource="${server.origin}/x/2026-03-01/x.owl"/></owl:Ontology></rdf:RDF>`;
  files.set("/x.owl", owl);
  files.set("/x/2026-03-01/x.owl", owl);
  await write(direct("/x.owl")(server.origin));
  await run("pull");
  files.delete("/x.owl");
  await rm(store, { recursive: true });
  const frozen = await run("pull --frozen");
  assert.equal(frozen.exitCode, 0, frozen.stderr);
  assert.equal(server.requests.at(-1)?.url, "/x/2026-03-01/x.owl");
});

test("a frozen pull finds a version in a mirror that was stored with --accept", async t => {
  const { files, folder, run, store, server, write } = await setUp(t, direct("/x.obo"));
  files.set("/x.obo", release("2026-01-01", 3));
  await run("pull");
  const text = release("2026-01-01", 4);
  files.set("/x.obo", text);
  await run("pull --accept");
  await cp(store, join(folder, "mirror"), { recursive: true });
  await rm(store, { recursive: true });
  files.clear();
  await write(direct("/x.obo", ", mirrors: [mirror]")(server.origin));
  const mirrored = await run("pull --frozen");
  assert.equal(mirrored.exitCode, 0, mirrored.stderr);
  assert.equal(await readFile(join(store, "x", "2026-01-01", "x.obo"), "utf8"), text);
});

test("a pull with a pinned hash or version finds the file in a mirror if its address fails", async t => {
  const { files, folder, run, lock, store, server, write } = await setUp(t, direct("/x.obo"));
  const text = release("2026-01-01", 3);
  files.set("/x.obo", text);
  await run("pull");
  const { sha256 } = (await lock()).x;
  await cp(store, join(folder, "mirror"), { recursive: true });
  files.clear();
  const pullWith = async (more: string) => {
    await rm(store, { recursive: true });
    await write(direct("/x.obo", `, mirrors: [mirror], ${more}`)(server.origin));
    const { exitCode, stderr } = await run("pull");
    assert.equal(exitCode, 0, stderr);
    assert.equal(await readFile(join(store, "x", "2026-01-01", "x.obo"), "utf8"), text);
  };
  await pullWith(`sha256: "${sha256}"`);
  await rm(join(folder, "ontologies.lock.json"));
  await pullWith('version: "2026-01-01"');
  await rm(join(folder, "ontologies.lock.json"));
  await write(direct("/download", ', mirrors: [mirror], target_formats: [obo], version: "2026-01-01"')(server.origin));
  await rm(store, { recursive: true });
  assert.equal((await run("pull")).exitCode, 0);
});

test("the lockfile contains each file as soon as it is stored", async t => {
  const { files, run, lock, write, server, folder } = await setUp(t, direct("/x.obo"));
  files.set("/x.obo", release("1.0", 2));
  await write(
    `parallel: 1\nsources:\n  x: { resolver: direct, extras: { url: "${server.origin}/x.obo" } }\n` +
      `  y: { resolver: direct, extras: { url: "${server.origin}/y.obo" } }\n`,
  );
  const result = await run("pull");
  assert.equal(result.exitCode, 1);
  assert.equal(result.stderr.split("\n").at(-2), "1 fetched; 1 failed");
  assert.deepEqual(Object.keys(await lock()), ["x"]);
  const text = await readFile(join(folder, "ontologies.lock.json"), "utf8");
  await writeFile(
    join(folder, "ontologies.lock.json"),
    text.replaceAll(`${server.origin}/x.obo`, "file:///etc/passwd"),
  );
  const bad = await run("pull --frozen");
  assert.equal(bad.exitCode, 2);
  assert.match(bad.stderr, /ontologies\.x\.(?:url|extras).*expected an http or https URL/);
});

test("imports are fetched, locked and written to a catalogue; cycles end, and missing ones are reported", async t => {
  const ontology = (iri: string, imports: readonly string[]) =>
    `<${iri}> a <${OWL}Ontology> . ${imports.map(other => `<${iri}> <${OWL}imports> <${other}> . `).join("")} <${iri}#A> a <${OWL}Class> .`;
  const { files, run, lock, store, server } = await setUp(t, direct("/x.ttl", ", imports: true"));
  const at = (name: string) => `${server.origin}/${name}.ttl`;
  files.set("/x.ttl", ontology(at("x"), [at("y"), at("missing")]));
  files.set("/y.ttl", ontology(at("y"), [at("z"), at("x")]));
  files.set("/z.ttl", ontology(at("z"), [at("y")]));
  const pulled = await run("pull");
  assert.equal(pulled.exitCode, 1);
  assert.match(pulled.stderr, /^missing-ttl-[0-9a-f]{8} \(imported by x\): 127\.0\.0\.1:\d+ returned status 404/m);
  assert.match(pulled.stdout, /^z-ttl-[0-9a-f]{8} \(imported by y-ttl-[0-9a-f]{8}\): fetched/m);
  const locked = await lock();
  assert.equal(Object.keys(locked).length, 3);
  const catalog = await readFile(join(store, "catalog-v001.xml"), "utf8");
  for (const name of ["x", "y", "z"]) {
    const [, path = ""] = new RegExp(`name="${at(name)}" uri="([^"]+)"`).exec(catalog) ?? [];
    assert.ok(existsSync(join(store, path)), `${name}: ${path}`);
  }
  files.clear();
  await rm(join(store, "x"), { recursive: true });
  assert.match((await run("pull --frozen")).stderr, /^x: .*404/m);
  files.set("/x.ttl", ontology(at("x"), [at("y"), at("missing")]));
  assert.equal((await run("pull --frozen")).exitCode, 0);
});

test("the catalogue keeps the files of sources that are not pulled or that fail", async t => {
  const { files, run, store } = await setUp(
    t,
    origin =>
      `defaults: { resolver: direct, imports: true }\nsources:\n` +
      `  a: { extras: { url: "${origin}/a.ttl" } }\n  b: { extras: { url: "${origin}/b.ttl" } }\n`,
  );
  for (const name of ["a", "b"]) files.set(`/${name}.ttl`, `<http://x/${name}> a <${OWL}Ontology> .`);
  const catalog = () => readFile(join(store, "catalog-v001.xml"), "utf8");
  assert.equal((await run("pull")).exitCode, 0);
  const complete = await catalog();
  for (const name of ["a", "b"]) assert.match(complete, new RegExp(`name="http://x/${name}" uri="${name}/`));
  await run("pull a");
  assert.equal(await catalog(), complete);
  files.delete("/b.ttl");
  assert.equal((await run("pull")).exitCode, 1);
  assert.equal(await catalog(), complete);
  await rm(join(store, "catalog-v001.xml"));
  await run("pull --frozen a");
  assert.equal(await catalog(), complete);
});

test("path, diff and export read stored versions", async t => {
  const { files, run, store } = await setUp(t, direct("/x.obo"));
  files.set("/x.obo", release("2026-01-01", 20, "\n[Typedef]\nid: part_of\nname: part of\n"));
  await run("pull");
  const changed = release("2026-02-01", 20)
    .replace("id: X:2\nname: term 2\n", "id: X:2\nname: second\nis_a: X:3\nrelationship: part_of X:4\n")
    .replace("name: term 5\n", "name: term 5\nis_obsolete: true\nreplaced_by: X:6\n")
    .replace("id: X:20\n", "id: X:21\n");
  files.set("/x.obo", changed);
  await run("pull");
  assert.equal((await run("path x")).stdout, `${join(store, "x", "2026-02-01", "x.obo")}\n`);
  assert.equal((await run("path x@2026-01-01")).stdout, `${join(store, "x", "2026-01-01", "x.obo")}\n`);
  const unknown = await run("path x@2027");
  assert.equal(unknown.exitCode, 2);
  assert.match(unknown.stderr, /x@2027 is not in the store; stored versions: 2026-02-01, 2026-01-01/);

  const { counts, changes } = JSON.parse((await run("diff x@2026-01-01 x --json")).stdout);
  assert.deepEqual(counts, { removed: 2, deprecated: 1, renamed: 1, added: 1 });
  const X = "http://purl.obolibrary.org/obo/X_";
  assert.deepEqual(
    changes.map(({ change, iri }: { change: string; iri: string }) => [change, iri]),
    [
      ["removed", `${X}20`],
      ["removed", "http://purl.obolibrary.org/obo/x#part_of"],
      ["deprecated", `${X}5`],
      ["renamed", `${X}2`],
      ["added", `${X}21`],
    ],
  );
  const table = await run("diff x@2026-01-01 x@2026-02-01 --exit-code");
  assert.equal(table.exitCode, 1);
  assert.match(table.stderr, /^21 -> 20 terms; 2 removed, 1 deprecated, 1 renamed, 1 added\n$/);

  const triples = (await run("export x --format ntriples")).stdout;
  assert.match(triples, new RegExp(`^<${X}2> <http://www.w3.org/2000/01/rdf-schema#label> "second" \\.$`, "m"));
  const lines = (await run("export x --format nodes-edges")).stdout
    .trimEnd()
    .split("\n")
    .map(line => JSON.parse(line));
  assert.ok(
    lines.some(
      ({ subject, predicate, object }) => subject === `${X}2` && predicate.endsWith("#part_of") && object === `${X}4`,
    ),
  );
  assert.equal(lines.filter(({ node }) => node !== undefined).length, 20);
  const graphs = JSON.parse((await run("export x --format obographs")).stdout);
  assert.equal(graphs.graphs[0].nodes.length, 20);
  const crate = JSON.parse((await run("export x --format ro-crate")).stdout);
  assert.ok(crate["@graph"].some((entry: Record<string, unknown>) => entry["@id"] === "x/2026-02-01/x.obo"));
  assert.equal((await run("export x --format csv")).exitCode, 2);
});

test("export to a file leaves no partial file behind when it fails", async t => {
  const { files, run, folder } = await setUp(t, direct("/x.obo"));
  files.set("/x.obo", release("2026-01-01", 2));
  await run("pull");
  const target = join(folder, "out");
  await mkdir(target);
  await writeFile(join(target, "kept"), "");
  const before = (await readdir(folder)).sort();
  const { exitCode, stderr } = await run(`export x --format ntriples --to ${target}`);
  assert.equal(exitCode, 1);
  assert.match(stderr, /^ontofetch: --to: \S+ is a folder; expected a file$/m);
  assert.deepEqual((await readdir(folder)).sort(), before);
  for (const read of ["ontologies.lock.json", "sources.yaml", "ontologies/x/2026-01-01/x.obo"]) {
    const path = join(folder, read);
    const content = await readFile(path, "utf8");
    const refused = await run(`export x --format ntriples --to ${path}`);
    assert.equal(refused.exitCode, 2);
    assert.match(refused.stderr, /^ontofetch: --to: this command reads \S+, and would replace it; name another file$/m);
    assert.equal(await readFile(path, "utf8"), content);
  }
  assert.equal((await run(`export x --format ntriples --to ${join(target, "x.nt")}`)).exitCode, 0);
  assert.equal(await readFile(join(target, "x.nt"), "utf8"), (await run("export x --format ntriples")).stdout);
  assert.deepEqual((await readdir(target)).sort(), ["kept", "x.nt"]);
});

test("versions lists stored and locked versions, and says when the service lists none", async t => {
  const { files, run } = await setUp(t, direct("/x.obo"));
  files.set("/x.obo", release("2026-01-01", 2));
  await run("pull");
  const listed = await run("versions x");
  assert.match(listed.stdout, /^version +store +lock +service\n2026-01-01 +stored +locked\n$/);
  assert.equal(listed.stderr, "x: resolver direct lists no versions\n");
  assert.equal(listed.exitCode, 0);
});

test("versions of another OntoPortal need no key of BioPortal", async t => {
  const { files, run } = await setUp(
    t,
    origin => `sources:\n  x: { resolver: bioportal, extras: { base: "${origin}" } }\n`,
  );
  const submissions = [{ submissionId: 2, version: "2026-02-01" }];
  files.set("/ontologies/X/submissions?include=submissionId,version,released", JSON.stringify(submissions));
  const listed = await run("versions x");
  assert.equal(listed.stderr, "");
  assert.match(listed.stdout, /^2026-02-01 +listed$/m);
});

test("versions with a wrong key say which key is wrong", async t => {
  const server = await serve(t, (_request, response) => response.writeHead(401).end("{}"));
  const { run, write } = await setUp(t, direct("/x.obo"));
  await write(`sources:\n  x: { resolver: bioportal, extras: { base: "${server.origin}" } }\n`);
  const { host } = new URL(server.origin);
  const { exitCode, stderr } = await run("versions x");
  assert.equal(
    stderr,
    `x: ${host} rejected the API key, or got none: configure the key of ${host} in identities.yaml (DOCSTOKG_IDENTITIES_YAML)\n`,
  );
  assert.equal(exitCode, 1);
});

test("prune keeps the last version whose file is undamaged", async t => {
  const { files, run, store } = await setUp(t, direct("/x.obo"));
  for (const version of ["2026-01-01", "2026-02-01"]) {
    files.set("/x.obo", release(version, 2));
    await run("pull");
  }
  await writeFile(join(store, "x", "2026-02-01", "x.obo"), "damaged");
  await rm(join(store, "..", "ontologies.lock.json"));
  await run("prune --keep 1");
  assert.deepEqual((await readdir(join(store, "x"))).sort(), ["2026-01-01", "2026-02-01"]);
  await mkdir(join(store, "empty"), { recursive: true });
  assert.equal((await run("prune --keep 1")).exitCode, 0);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync, inflateRawSync } from "node:zlib";
import fc from "fast-check";
import { digest } from "./article-file.ts";
import type { SimulatedReply, SimulatedRequest } from "./exchange.ts";
import { makeHostDirectory } from "./host-directory.ts";
import type { SimulatedOntology } from "./ontology-catalogue.ts";
import { completeFile, filledTo, type OntologyFormat, type OntologyPlan, ontologyFile } from "./ontology-file.ts";

const directory = makeHostDirectory({ seed: 3, works: 0, bigOntologyBytes: 1_000_000 });
const KEY = { authorization: "apikey token=secret" };

function ask(url: string, more: Partial<SimulatedRequest> = {}): SimulatedReply {
  const { protocol, host, pathname, search, searchParams } = new URL(url);
  const where = { isTls: protocol === "https:", host, path: pathname, search, query: searchParams };
  return directory.answer({ method: "GET", ...where, headers: KEY, body: "", earlierRequests: 1, wallMs: 0, ...more });
}

function bytesOf({ body }: SimulatedReply): Buffer {
  return body instanceof Uint8Array ? Buffer.from(body) : completeFile(body);
}

// biome-ignore lint/suspicious/noExplicitAny: tests read single fields of JSON responses
function jsonOf(reply: SimulatedReply): any {
  return JSON.parse(bytesOf(reply).toString());
}

function follow(url: string): { readonly hops: readonly string[]; readonly end: SimulatedReply } {
  const hops: string[] = [];
  for (let at = url; ; ) {
    const end = ask(at);
    if (end.headers["location"] === undefined) return { hops, end };
    at = end.headers["location"];
    hops.push(at);
  }
}

function named(id: string): SimulatedOntology {
  const found = directory.ontologies.find(each => each.id === id);
  assert.ok(found !== undefined);
  return found;
}

const plan: OntologyPlan = {
  id: "reed",
  title: "An ontology of reed",
  version: "2026-07-31",
  iri: "http://example.org/reed.owl",
  versionIri: "http://example.org/reed/2026-07-31/reed.owl",
  termBase: "http://example.org/REED_",
  terms: 5,
};
const ENDS: Readonly<Record<OntologyFormat, readonly [begin: RegExp, end: RegExp, version: RegExp]>> = {
  owl: [
    /^<\?xml/,
    /<\/rdf:RDF>\n$/,
    /<owl:versionIRI rdf:resource="http:\/\/example\.org\/reed\/2026-07-31\/reed\.owl"\/>/,
  ],
  obo: [/^format-version: 1\.2\n/, /is_a: REED:0000001 ! reed\n$/, /^data-version: reed\/releases\/2026-07-31$/m],
  json: [/^\{"graphs"/, /\]\}\]\}\n$/, /"version":"http:\/\/example\.org\/reed\/2026-07-31\/reed\.owl"/],
  ttl: [/^@prefix/, /\.\n$/, /owl:versionIRI <http:\/\/example\.org\/reed\/2026-07-31\/reed\.owl>/],
  ofn: [/^Prefix\(/, /\)\n$/, /\n<http:\/\/example\.org\/reed\/2026-07-31\/reed\.owl>\n/],
  owx: [/^<\?xml/, /<\/Ontology>\n$/, /versionIRI="http:\/\/example\.org\/reed\/2026-07-31\/reed\.owl"/],
};

for (const [format, [begin, end, version]] of Object.entries(ENDS)) {
  test(`an ontology in ${format} has the beginning, end and version of that format`, () => {
    const pieces = ontologyFile(plan, format as OntologyFormat);
    const text = completeFile(pieces).toString();
    assert.equal(Buffer.byteLength(text), pieces.length);
    assert.match(text, begin);
    assert.match(text, end);
    assert.match(text, version);
    assert.ok(["0000001", "0000004"].every(number => text.includes(number)));
  });
}

test("an obographs file has a node for each term and an edge for each term except the root", () => {
  const [graph] = JSON.parse(completeFile(ontologyFile(plan, "json")).toString()).graphs;
  assert.deepEqual([graph.nodes.length, graph.edges.length], [5, 4]);
});

test("any range of a file equals the same range of the complete file, in every format", () => {
  const formats = fc.constantFrom(...(Object.keys(ENDS) as OntologyFormat[]));
  fc.assert(
    fc.property(formats, fc.integer({ min: 2, max: 900 }), fc.nat(), fc.nat(), (format, terms, one, other) => {
      const pieces = ontologyFile({ ...plan, terms }, format);
      const [start, end] = [one % pieces.length, other % (pieces.length + 1)].sort((a, b) => a - b) as [number, number];
      const part = Buffer.concat([...pieces.from(start, end)]);
      assert.deepEqual(part, completeFile(pieces).subarray(start, end));
    }),
    { numRuns: 60 },
  );
});

test("a plan is filled to a size, and the length of half a gigabyte is known without generating it", () => {
  const filled = filledTo(plan, "owl", 500_000_000);
  const pieces = ontologyFile(filled, "owl");
  assert.ok(pieces.length <= 500_000_000 && pieces.length > 499_999_000);
  const [last = new Uint8Array()] = [...pieces.from(pieces.length - 11, pieces.length)];
  assert.equal(Buffer.from(last).toString(), "</rdf:RDF>\n");
});

test("every file is at the end of the redirects in the catalogue", () => {
  for (const { id, copies } of directory.ontologies) {
    for (const { url, hops, bytes, sha256 } of copies) {
      const found = follow(url);
      assert.deepEqual(found.hops, hops, id);
      assert.equal(found.end.status, 200);
      assert.equal(found.end.body.length, bytes);
      if (sha256 !== undefined) assert.equal(digest("sha256", bytesOf(found.end)), sha256);
    }
  }
});

test("compressed files contain the file that the catalogue names", () => {
  const at = (id: string, packed: string) => {
    const copy = named(id).copies.find(each => each.packed === packed);
    return bytesOf(follow(copy?.url ?? "").end);
  };
  assert.match(gunzipSync(at("alder", "gz")).toString(), /<\/rdf:RDF>\n$/);
  const zip = at("fern", "zip");
  const nameBytes = zip.readUInt16LE(26);
  assert.equal(zip.toString("latin1", 30, 30 + nameBytes), "fern.owl");
  const packed = zip.subarray(30 + nameBytes, 30 + nameBytes + zip.readUInt32LE(18));
  assert.match(inflateRawSync(packed).toString(), /<\/rdf:RDF>\n$/);
});

test("the version IRI redirects to the file", () => {
  const reed = named("reed");
  assert.equal(digest("sha256", bytesOf(follow(reed.versionIri).end)), reed.copies[0]?.sha256);
});

test("a truncated file is truncated only once", () => {
  const url = named("alder").copies[0]?.hops.at(-1) ?? "";
  assert.ok((ask(url, { earlierRequests: 0 }).cutAtBytes ?? 0) > 0);
  assert.equal(ask(url).cutAtBytes, undefined);
});

test("the OBO registry lists products and marks obsolete ontologies", () => {
  const { ontologies } = jsonOf(ask("https://obofoundry.org/registry/ontologies.jsonld"));
  const by = (id: string) => ontologies.find((each: { id: string }) => each.id === id);
  assert.deepEqual(
    by("reed").products.map((product: { ontology_purl: string }) => product.ontology_purl),
    named("reed").copies.map(({ url }) => url),
  );
  assert.deepEqual([by("dusk").is_obsolete, by("dusk").replaced_by], [true, "reed"]);
  assert.match(bytesOf(ask("http://purl.obolibrary.org/obo/sedge.owl")).toString(), /<!doctype html>/);
});

test("OLS lists its ontologies by page, and returns a file: URL for one on its own disk", () => {
  const first = jsonOf(ask("https://www.ebi.ac.uk/ols4/api/ontologies?size=2"));
  assert.equal(first._embedded.ontologies.length, 2);
  assert.equal(first.page.totalPages, Math.ceil(first.page.totalElements / 2));
  const { config, version } = jsonOf(ask("https://www.ebi.ac.uk/ols4/api/ontologies/lichen"));
  assert.match(config.fileLocation, /^file:\/\/\//);
  assert.equal(version, named("lichen").version);
  assert.equal(jsonOf(ask("https://www.ebi.ac.uk/ols4/api/ontologies/nothing")).status, 404);
});

test("BioPortal requires a key, names its files, and refuses a file whose licence forbids the download", () => {
  const at = "https://data.bioontology.org/ontologies";
  assert.equal(ask(`${at}/OTTER`, { headers: {} }).status, 401);
  const { links, version, submissionId } = jsonOf(ask(`${at}/OTTER/latest_submission`));
  assert.deepEqual([links.download, submissionId, version], [named("otter").copies[0]?.url, 7, named("otter").version]);
  const file = ask(`${at}/OTTER/download?apikey=x`, { headers: {} });
  assert.equal(file.headers["content-disposition"], 'attachment; filename="otter.owl"');
  assert.deepEqual([ask(`${at}/HERON/download`).status, ask(`${at}/NOTHING`).status], [403, 422]);
});

test("Bioregistry and LOV return the URLs of the files", () => {
  const entry = jsonOf(ask("https://bioregistry.io/api/registry/fern?format=json"));
  assert.equal(entry.download_json, named("fern").copies.find(({ format }) => format === "json")?.url);
  assert.equal(ask("https://bioregistry.io/api/registry/nothing").status, 404);
  const info = jsonOf(ask("https://lov.linkeddata.es/dataset/lov/api/v2/vocabulary/info?vocab=moss"));
  assert.equal(info.versions[0].fileURL, named("moss").copies[0]?.url);
});

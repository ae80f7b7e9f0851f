import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { startProxy } from "../../test/http/connect-proxy.ts";
import { internetFor, projectFor } from "../../test/ontology/kit.ts";
import { outcomes } from "../../test/ontology/outcomes.ts";
import { OBO } from "../../test/ontology/sample-files.ts";
import type { OntologyManifest } from "./ontology-manifest.ts";

const GOOD = `
  reed: { target_formats: [obo] }
  marsh: { target_formats: [owl] }
  kelp: {}
  alder: { extras: { product: alder.owl.gz } }
  finch: { resolver: ols }
  fern: { resolver: bioregistry, target_formats: [json] }
  otter: { resolver: bioportal }
  badger: { resolver: bioportal }
  moss: { resolver: lov }
  fern-ofn: { resolver: direct, extras: { url: "https://files.ontologies.example/fern.ofn" } }
  fern-owx: { resolver: direct, extras: { url: "https://files.ontologies.example/fern.owx" } }
  fern-zip: { resolver: skos, extras: { url: "https://files.ontologies.example/fern.owl.zip" } }
`;
const BAD = `
  heron: { resolver: bioportal }
  lichen: { resolver: ols }
  dusk: {}
  sedge: {}
  missing: {}
  kelp-obo: { resolver: direct, target_formats: [obo], extras: { url: "http://purl.obolibrary.org/obo/kelp.owl" } }
`;
const FORMATS: Readonly<Record<string, string>> = {
  reed: "obo",
  marsh: "rdf-xml",
  kelp: "rdf-xml",
  alder: "rdf-xml",
  finch: "turtle",
  fern: "obographs",
  otter: "rdf-xml",
  badger: "obo",
  moss: "turtle",
  "fern-ofn": "functional",
  "fern-owx": "owl-xml",
  "fern-zip": "rdf-xml",
};

test("ontologies of every resolver are downloaded, checked, stored and locked; a failed source says why", async t => {
  const internet = await internetFor(t);
  const project = await projectFor(internet, `ratelimit: { default: 100/second }\nsources:${GOOD}${BAD}`);
  const results = await project.pull();
  assert.deepEqual(outcomes(results), {
    ...Object.fromEntries(Object.keys(FORMATS).map(id => [id, "fetched"])),
    heron: "the licence of heron does not permit download from BioPortal",
    lichen: "the file location of lichen in OLS is not public (file:)",
    dusk: "dusk is obsolete, replaced by reed",
    sedge: "rejected: file is an HTML page",
    missing: "unknown ontology missing in the OBO registry",
    "kelp-obo": "rejected: format is rdf-xml, wanted obo (target_formats)",
  });

  const store = join(project.folder, "ontologies");
  for (const result of results) {
    if (result.outcome === "failed") continue;
    const { manifest, path } = result.stored;
    const known = internet.ontologies.find(({ id }) => result.id.startsWith(id));
    assert.equal(manifest.format, FORMATS[result.id]);
    assert.equal(manifest.version, known?.version);
    assert.equal(path, join(store, result.id, manifest.version, manifest.file));
    const bytes = await readFile(path);
    assert.equal(bytes.length, manifest.bytes);
    assert.equal(createHash("sha256").update(bytes).digest("hex"), manifest.sha256);
    const copy = known?.copies.find(({ url }) => url === manifest.url);
    assert.equal(manifest.received?.sha256 ?? manifest.sha256, copy?.sha256);
    const stored: OntologyManifest = JSON.parse(await readFile(join(path, "..", "manifest.json"), "utf8"));
    assert.deepEqual(stored, manifest);
  }
  assert.deepEqual((await readdir(store)).sort(), [".ontofetch", ...Object.keys(FORMATS).sort()]);
  assert.deepEqual(await readdir(join(store, ".ontofetch", "partial")), []);
  assert.deepEqual(await readdir(join(store, ".ontofetch", "drafts")), []);

  // The query of a release URL is a signature, and BioPortal has an API key: neither is written to a file.
  const lock = await readFile(join(project.folder, "ontologies.lock.json"), "utf8");
  const marsh = await readFile(
    join(store, "marsh", results[1]?.outcome === "fetched" ? results[1].stored.folder : "", "manifest.json"),
    "utf8",
  );
  for (const text of [lock, marsh]) assert.doesNotMatch(text, /secret|sig=/);
  assert.deepEqual(Object.keys(JSON.parse(lock).ontologies), Object.keys(FORMATS).sort());
  assert.match(lock, /\}\n$/);

  const { rejected, faults } = await internet.ledger();
  assert.equal(rejected, 0);
  assert.deepEqual(faults, []);
});

test("a second pull of unchanged files gets 304 and downloads nothing", async t => {
  const internet = await internetFor(t);
  const project = await projectFor(internet, `ratelimit: { default: 100/second }\nsources:${GOOD}`);
  await project.pull();
  const before = await readFile(join(project.folder, "ontologies.lock.json"), "utf8");
  const earlier = await internet.ledger();
  const again = outcomes(await project.pull());
  assert.deepEqual(new Set(Object.values(again)), new Set(["unchanged"]));
  assert.equal(await readFile(join(project.folder, "ontologies.lock.json"), "utf8"), before);
  const later = await internet.ledger();
  const files = [
    "files.ontologies.example",
    "current.geneontology.org",
    "release-assets.githubusercontent.com",
    "ftp.ebi.ac.uk",
  ];
  for (const host of files) {
    const news = (status: string) =>
      (later.hosts[host]?.statuses[status] ?? 0) - (earlier.hosts[host]?.statuses[status] ?? 0);
    assert.ok(news("304") > 0, host);
    assert.equal(news("206"), 0, host);
    // The HEAD request that probes for TLS returns no file.
    assert.ok(news("200") === 0, `${host}: ${news("200")}`);
  }
});

test("a stored version in another format than the wanted one is not reused", async t => {
  const internet = await internetFor(t);
  const source = (formats: string) =>
    `sources:\n  fern: { resolver: direct, target_formats: [${formats}], extras: { url: "https://files.ontologies.example/fern.ofn" } }\n`;
  const project = await projectFor(internet, source("ofn"));
  assert.deepEqual(outcomes(await project.pull()), { fern: "fetched" });
  await project.write(source("owl"));
  assert.deepEqual(outcomes(await project.pull()), {
    fern: "rejected: format is functional, wanted owl (target_formats)",
  });
});

test("an interrupted download is resumed, and the result has the right hash", async t => {
  const internet = await internetFor(t);
  const project = await projectFor(internet, "sources:\n  alder: { target_formats: [owl] }\n");
  const [result] = await project.pull();
  assert.ok(result !== undefined && result.outcome === "fetched");
  assert.equal(result.requests, 2);
  assert.ok(result.resumedBytes > 0);
  const known = internet.ontologies.find(({ id }) => id === "alder")?.copies[0];
  assert.equal(result.stored.manifest.sha256, known?.sha256);
});

test("an aborted pull leaves only a partial file, and the next pull resumes it", async t => {
  const internet = await internetFor(t);
  const project = await projectFor(
    internet,
    'sources:\n  titan: { resolver: direct, extras: { url: "https://files.ontologies.example/titan.obo" } }\n',
  );
  const controller = new AbortController();
  const stopped = project.pull({
    signal: controller.signal,
    onBytes: (_id, bytes) => {
      if (bytes > 500_000) controller.abort(new Error("enough"));
    },
  });
  await assert.rejects(stopped, { message: "enough" });
  assert.deepEqual(await readdir(join(project.folder, "ontologies")), [".ontofetch"]);
  assert.deepEqual((await readdir(join(project.folder, "ontologies", ".ontofetch", "partial"))).sort(), [
    "titan.part",
    "titan.part.json",
  ]);
  const [result] = await project.pull();
  assert.ok(result !== undefined && result.outcome === "fetched", JSON.stringify(result));
  assert.ok(result.resumedBytes >= 500_000);
  assert.equal(result.stored.manifest.bytes, internet.ontologies.find(({ id }) => id === "titan")?.copies[1]?.bytes);
});

test("a 429 with Retry-After is waited out once, and the pull succeeds", async t => {
  const internet = await internetFor(t, {
    script: [{ effect: "throttle", host: "files.ontologies.example", retryAfterS: 1, times: 1 }],
  });
  const project = await projectFor(internet, "sources:\n  finch: { resolver: ols }\n");
  assert.deepEqual(outcomes(await project.pull()), { finch: "fetched" });
  const { hosts } = await internet.ledger();
  const { statuses = {}, arrivalsMs = [] } = hosts["files.ontologies.example"] ?? {};
  assert.deepEqual(statuses, { 200: 1, 429: 1 });
  const [first = 0, second = 0] = arrivalsMs;
  assert.ok(second - first >= 1000, `${second - first}`);
});

test("a pull works by permanent URLs while the OBO registry is down", async t => {
  const internet = await internetFor(t, { script: [{ effect: "outage", host: "obofoundry.org", how: "reset" }] });
  const project = await projectFor(internet, "sources:\n  reed: { target_formats: [obo] }\n");
  assert.deepEqual(outcomes(await project.pull()), { reed: "fetched" });
});

test("a pull goes through the proxy of the environment, whose password is written nowhere", async t => {
  const proxy = await startProxy(t, 1, OBO);
  const project = await projectFor(
    { network: {} },
    'sources:\n  x: { resolver: direct, extras: { url: "http://files.example.org:8080/x.obo" } }\n',
  );
  const results = await project.pull({ env: { HTTP_PROXY: proxy.url } });
  assert.deepEqual(outcomes(results), { x: "fetched" });
  assert.deepEqual(proxy.targets, ["http://files.example.org:8080/x.obo"]);
  for (const entry of await readdir(project.folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const content = await readFile(join(entry.parentPath, entry.name), "latin1");
    assert.ok(!content.includes("user:secret"), entry.name);
  }
});

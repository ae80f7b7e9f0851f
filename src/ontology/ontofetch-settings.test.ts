import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { formatRates } from "../core/limits/rate.ts";
import { loadOntofetchSettings, type OntofetchFlags } from "./ontofetch-settings.ts";

const folder = mkdtempSync(join(tmpdir(), "ontofetch-settings-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function load(yaml: string, env: Readonly<Record<string, string>> = {}, flags: OntofetchFlags = {}) {
  writeFileSync(join(folder, "sources.yaml"), yaml);
  return loadOntofetchSettings({ sources: join(folder, "sources.yaml"), ...flags }, env, "/somewhere/else");
}

const problems = (yaml: string, env: Readonly<Record<string, string>> = {}, flags: OntofetchFlags = {}) =>
  load(yaml, env, flags).then(
    () => [],
    error => error.message.replaceAll(`${folder}/`, "").split("\n"),
  );

test("a file with sources only is enough: paths default to the folder of the file", async () => {
  const settings = await load("sources:\n  hp:\n");
  assert.deepEqual(settings.sources, [{ id: "hp", resolver: "obo", targetFormats: [], extras: {} }]);
  assert.equal(settings.store, join(folder, "ontologies"));
  assert.equal(settings.lockfile, join(folder, "ontologies.lock.json"));
  assert.equal(settings.sharedDir, undefined);
  assert.equal(formatRates(settings.rates.default), "8/SECOND+300/MINUTE");
});

test("a flag replaces an environment variable, which replaces the file", async () => {
  const yaml = "store: here\ncheck: end\nratelimit: { default: 2/second, shared_dir: shared }\nsources: { hp: {} }\n";
  assert.equal((await load(yaml)).sharedDir, join(folder, "shared"));
  const env = {
    ONTOFETCH_STORE: "there",
    ONTOFETCH_RATELIMIT_DEFAULT: "4/second",
    ONTOFETCH_RATELIMIT_PER_SERVICE: "ols:1/second",
    ONTOFETCH_RATELIMIT_SHARED_DIR: "common",
    ONTOFETCH_CHECK: "",
  };
  const settings = await load(yaml, env, { rate: "6/second" });
  assert.equal(settings.store, "/somewhere/else/there");
  assert.equal(settings.check, "end");
  assert.equal(settings.sharedDir, "/somewhere/else/common");
  assert.equal(formatRates(settings.rates.default), "6/SECOND+300/MINUTE");
  assert.equal(formatRates(settings.rates.perService.get("ols") ?? []), "1/SECOND");
  const unlimited = await load(yaml, { ONTOFETCH_RATELIMIT_DEFAULT: "unlimited" });
  assert.deepEqual(unlimited.rates.default, []);
});

test("a mirror that is no https URL, bucket or folder is an error with its line", async () => {
  const yaml = (mirror: string) => `sources:\n  hp: { mirrors: [/srv/obo, "${mirror}"] }\n`;
  for (const mirror of ["ftp://mirror.example.org", "s3://Bad_Bucket/x", "http://mirror.example.org"]) {
    const [problem = "", ...others] = await problems(yaml(mirror));
    assert.ok(problem.startsWith("sources.yaml:2: sources.hp.mirrors.1: expected an https URL, s3://bucket/key or a"));
    assert.ok(problem.includes(`found "${mirror}"`), problem);
    assert.deepEqual(others, []);
  }
  const { sources } = await load(yaml("https://mirror.example.org/{id}/{file}"));
  assert.equal(sources[0]?.mirrors?.length, 2);
});

test("a resolver with formats of its own inherits none, and refuses others", async () => {
  const source = (more: string) =>
    `defaults: { target_formats: [owl] }\nsources:\n  a: { resolver: xbrl, ${more}extras: { url: "https://x.example/a.zip" } }\n`;
  const { sources } = await load(source(""));
  assert.deepEqual(sources[0]?.targetFormats, ["zip"]);
  assert.deepEqual((await load(source("target_formats: [zip], "))).sources[0]?.targetFormats, ["zip"]);
  assert.deepEqual(await problems(source("target_formats: [ttl, zip], ")), [
    "sources.yaml:3: sources.a.target_formats: resolver xbrl has only zip, not ttl",
  ]);
});

test("a source inherits missing values from defaults", async () => {
  const settings = await load(
    "defaults: { resolver: ols, target_formats: [ttl] }\nsources:\n  a: {}\n  b: { resolver: direct, target_formats: [], extras: { url: 'https://x.example/b', version: 2 } }\n",
  );
  assert.deepEqual(settings.sources, [
    { id: "a", resolver: "ols", targetFormats: ["ttl"], extras: {} },
    { id: "b", resolver: "direct", targetFormats: [], extras: { url: "https://x.example/b", version: "2" } },
  ]);
});

test("a value of a wrong type is refused with what would be valid", async () => {
  const yaml =
    "ratelimit: { default: 8, per_service: [ols] }\nsources:\n  hp: { resolver: direct, extras: { url: [x] } }\n";
  assert.deepEqual(await problems(yaml), [
    "sources.yaml:1: ratelimit.default: expected a rate such as 8/second, a list of rates, or null for no limit, found 8",
    'sources.yaml:1: ratelimit.per_service: expected a rate for each service, such as { ols: 4/second }, or the text ols:4/second;bioportal:2/second, found ["ols"]',
    'sources.yaml:3: sources.hp.extras.url: expected a text, a number, true or false, found ["x"]',
  ]);
});

test("all problems are reported at once, each with its line and a suggestion", async () => {
  assert.deepEqual(
    await problems("storee: x\nsources:\n  Hp: {}\n  go: { target_formats: [owl, obi] }\n  ../x: {}\n"),
    [
      'sources.yaml:3: sources.Hp: invalid id "Hp"; use 1 to 64 lower-case letters, digits, ".", "_" and "-", and begin and end with a letter or digit',
      'sources.yaml:4: sources.go.target_formats.1: expected one of "owl", "obo", "json", "ttl", "ofn", "jsonld", "omn", "nt", "nq", "trig", "zip", found "obi"',
      'sources.yaml:5: sources.../x: invalid id "../x"; use 1 to 64 lower-case letters, digits, ".", "_" and "-", and begin and end with a letter or digit',
      "sources.yaml:1: storee: unknown key; did you mean store?",
    ],
  );
  assert.deepEqual(
    await problems(
      "sources:\n  a: { resolver: bioprtal }\n  b: { resolver: direct, extras: { uri: x } }\n  c: { resolver: direct, extras: { url: 'https://x.example/?api_key=1' } }\nratelimit: { per_service: { olx: 1/second } }\n",
    ),
    [
      'sources.yaml:2: sources.a.resolver: unknown resolver "bioprtal"; did you mean bioportal?',
      "sources.yaml:3: sources.b.extras.uri: unknown key in extras of resolver direct; did you mean url?",
      "sources.yaml:3: sources.b.extras: resolver direct requires url: URL of the file",
      'sources.yaml:4: sources.c.extras.url: contains the query parameter "api_key", which may be a secret, and the URL is written to the lockfile and to manifests; configure the secret in identities.yaml (DOCSTOKG_IDENTITIES_YAML)',
      'sources.yaml:5: ratelimit.per_service: unknown service "olx"; did you mean ols?',
    ],
  );
});

test("a problem of a variable or flag is reported with its name", async () => {
  const [first = "", second = "", third = ""] = await problems(
    "sources: { hp: {} }\n",
    { ONTOFETCH_PARALLEL: "many", ONTOFETCH_RATELIMIT_DEFALT: "1/second" },
    { check: "deeply" },
  );
  assert.equal(
    first,
    "ONTOFETCH_RATELIMIT_DEFALT: unknown environment variable; did you mean ONTOFETCH_RATELIMIT_DEFAULT?",
  );
  assert.match(second, /^ONTOFETCH_PARALLEL: parallel: expected number, found "many"$/);
  assert.match(third, /^--check: check: expected one of "full", "end", "none", found "deeply"$/);
  const [rate = ""] = await problems("sources: { hp: {} }\n", { ONTOFETCH_RATELIMIT_DEFAULT: "8/fortnight" });
  assert.match(rate, /^ONTOFETCH_RATELIMIT_DEFAULT: ratelimit\.default: "8\/fortnight" is not a rate/);
});

test("a missing sources.yaml is reported with the command that creates one", async () => {
  const missing = loadOntofetchSettings({}, {}, join(folder, "empty"));
  await assert.rejects(missing, { message: 'sources.yaml: file not found; create one with "ontofetch init"' });
});

test("an empty variable is no name of sources.yaml, and an empty flag is an error", async () => {
  await assert.rejects(loadOntofetchSettings({}, { ONTOFETCH_SOURCES: "" }, join(folder, "empty")), {
    message: 'sources.yaml: file not found; create one with "ontofetch init"',
  });
  await assert.rejects(loadOntofetchSettings({ sources: "" }, {}, folder), {
    message: "--sources: the text is empty; expected a file",
  });
});

test("a URL with a token is refused; parameters with similar names are accepted", async () => {
  const loadUrl = (url: string) => load(`sources:\n  x: { resolver: direct, extras: { url: "${url}" } }\n`);
  for (const url of [
    "https://ghp_token@x.example/x.obo",
    "https://x.example/x.obo?private_token=1",
    "https://x.example/x.obo?X-Goog-Signature=1",
    "https://x.example/x.obo?auth=1",
  ]) {
    await assert.rejects(loadUrl(url), /which may be a secret/, url);
  }
  const plain = "https://x.example/x.obo?author=a&keyword=b&signed=no";
  assert.equal((await loadUrl(plain)).sources[0]?.extras["url"], plain);
});

test("a store may be in S3, and every other URL is refused", async () => {
  assert.equal((await load("store: s3://papers/onto\nsources:\n  hp:\n")).store, "s3://papers/onto");
  assert.equal((await load("sources:\n  hp:\n", { ONTOFETCH_STORE: "s3://papers" })).store, "s3://papers");
  assert.deepEqual(await problems("store: gs://papers/onto\nsources:\n  hp:\n"), [
    'sources.yaml:1: store: expected a folder or s3://bucket/prefix, found "gs://papers/onto"',
  ]);
  const [message] = await problems("sources:\n  hp:\n", {}, { store: "s3://key:secret@papers/onto" });
  assert.match(message, /^--store: store: expected s3:\/\/bucket\/prefix, found ".*"; a bucket has 3 to 63 /);
  assert.doesNotMatch(message, /secret/);
  assert.deepEqual(
    await problems("lockfile: s3://papers/lock\nratelimit: { shared_dir: s3://papers/shared }\nsources:\n  hp:\n"),
    [
      'sources.yaml:1: lockfile: expected a path on this machine, found "s3://papers/lock"',
      'sources.yaml:2: ratelimit.shared_dir: expected a path on this machine, found "s3://papers/shared"',
    ],
  );
});

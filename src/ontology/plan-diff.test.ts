import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { serve } from "../../test/http/kit.ts";
import { internetFor, projectFor } from "../../test/ontology/kit.ts";
import { outcomes } from "../../test/ontology/outcomes.ts";
import { formatLock, readLock } from "./lockfile.ts";
import { diffPlan } from "./plan-diff.ts";

const SOURCES =
  "ratelimit: { default: 100/second }\nsources:\n  finch: { resolver: ols }\n  fern: { resolver: bioregistry, target_formats: [json] }\n";

test("a plan lists URL, size and licence of each file, and its differences from the lockfile", async t => {
  const internet = await internetFor(t);
  const project = await projectFor(internet, SOURCES);
  const [finch, fern] = await project.plan();
  const known = internet.ontologies.find(({ id }) => id === "fern");
  const copy = known?.copies.find(({ format }) => format === "json");
  assert.ok(finch?.kind === "fetch" && fern?.kind === "fetch");
  assert.deepEqual(
    [fern.url, fern.format, fern.version, fern.licence, fern.bytes],
    [copy?.url, "json", known?.version, "CC-BY-4.0", copy?.bytes],
  );
  const file = join(project.folder, "ontologies.lock.json");
  const changes = async () =>
    diffPlan(await project.plan(), await readLock(file)).map(({ id, change }) => [id, change]);
  assert.deepEqual(await changes(), [
    ["finch", "added"],
    ["fern", "added"],
  ]);
  await project.pull();
  assert.deepEqual(await changes(), [
    ["finch", "same"],
    ["fern", "same"],
  ]);
  const lock = new Map(await readLock(file));
  const locked = lock.get("finch");
  assert.ok(locked);
  await writeFile(file, formatLock(lock.set("finch", { ...locked, etag: '"older"' }).set("moss", locked)));
  await project.write(SOURCES.replace("  fern:", "  missing: { resolver: lov }\n  fern:"));
  assert.deepEqual(await changes(), [
    ["finch", "changed"],
    ["missing", "unknown"],
    ["fern", "same"],
    ["moss", "removed"],
  ]);
});

test("a source that differs from its lock entry is shown key by key, with both values", async t => {
  const project = await projectFor(await internetFor(t), SOURCES);
  await project.pull();
  const lock = await readLock(join(project.folder, "ontologies.lock.json"));
  await project.write(SOURCES.replace("ols }", "ols, target_formats: [ttl, owl], version: '2001-02-03' }"));
  const [finch] = diffPlan(await project.plan(), lock);
  assert.deepEqual(
    finch?.fields.filter(({ field }) => field.startsWith("source.")),
    [
      { field: "source.target_formats", locked: "any", planned: "ttl, owl" },
      { field: "source.version", locked: lock.get("finch")?.version, planned: "2001-02-03" },
    ],
  );
});

test("a locked file that a source imports is not removed, unless the source no longer wants its imports", async t => {
  const sources = SOURCES.replace("ols }", "ols, imports: true }");
  const project = await projectFor(await internetFor(t), sources);
  await project.pull();
  const lock = new Map(await readLock(join(project.folder, "ontologies.lock.json")));
  const locked = lock.get("finch");
  assert.ok(locked);
  lock.set("part", { ...locked, imported_by: ["finch"] }).set("deeper", { ...locked, imported_by: ["part"] });
  const removed = async () =>
    diffPlan(await project.plan(), lock)
      .filter(({ change }) => change === "removed")
      .map(({ id }) => id);
  assert.deepEqual(await removed(), []);
  await project.write(SOURCES);
  assert.deepEqual(await removed(), ["part", "deeper"]);
});

test("after a pull, a plan is the same as the lockfile, also if only the announced version has changed", async t => {
  let announced = "2026-10-01";
  const server = await serve(t, (request, response) => {
    const { origin } = server;
    if (request.url?.includes("/ontologies/")) {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ version: announced, config: { fileLocation: `${origin}/x.obo` } }));
      return;
    }
    const isKnown = request.headers["if-none-match"] === '"a"';
    response.writeHead(isKnown ? 304 : 200, { etag: '"a"' });
    response.end(isKnown ? "" : "format-version: 1.2\ndata-version: 7\nontology: x\n\n[Term]\nid: X:1\nname: one\n");
  });
  const sources = `allow_private: true\nsources:\n  x: { resolver: ols, extras: { base: "${server.origin}" } }\n`;
  const project = await projectFor({ network: {} }, sources);
  const change = async () => {
    const [found] = diffPlan(await project.plan(), await readLock(join(project.folder, "ontologies.lock.json")));
    return found?.change;
  };
  await project.pull();
  assert.equal(await change(), "same");
  announced = "2026-11-01";
  assert.equal(await change(), "changed");
  assert.deepEqual(outcomes(await project.pull()), { x: "unchanged" });
  assert.equal(await change(), "same");
});

test("after a pull that keeps a pinned version, the lockfile has the version that the service announces", async t => {
  const server = await serve(t, (_, response) => {
    response.end("format-version: 1.2\ndata-version: 7\nontology: x\n\n[Term]\nid: X:1\nname: one\n");
  });
  const sources = (announced: string) =>
    `allow_private: true\nsources:\n  x: { resolver: direct, version: "7", extras: { url: "${server.origin}/x.obo", version: "${announced}" } }\n`;
  const project = await projectFor({ network: {} }, sources("7"));
  await project.pull();
  await project.write(sources("7.0"));
  assert.deepEqual(outcomes(await project.pull()), { x: "kept" });
  const lock = await readLock(join(project.folder, "ontologies.lock.json"));
  assert.equal(lock.get("x")?.announced_version, "7.0");
});

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { eventually } from "../../test/harvest/kit.ts";
import { projectAt } from "../../test/ontology/kit.ts";
import { FileLock } from "../files/file-lock.ts";
import { FolderOntologyStore } from "./folder-ontology-store.ts";
import { lockPathOf } from "./lock-writer.ts";
import { readLock } from "./lockfile.ts";
import { Ontofetch } from "./ontofetch.ts";
import { loadOntofetchSettings } from "./ontofetch-settings.ts";

const OBO = "format-version: 1.2\nontology: x\ndata-version: 1\n\n[Term]\nid: X:1\nname: one\n";

test("an ontology stays locked until the lockfile has its version, so that the last pull is the locked one", async t => {
  let body = OBO;
  const { project } = await projectAt(t, (_, response) => response.end(body));
  const store = new FolderOntologyStore(join(project.folder, "ontologies"));
  const lockfile = join(project.folder, "ontologies.lock.json");
  // No pull can write the lockfile for now.
  const blocked = await FileLock.tryAcquire(lockPathOf(lockfile));
  const first = project.pull();
  await eventually(async () => (await store.versions("x")).length === 1);
  body = OBO.replace("data-version: 1", "data-version: 2");
  const waited = Promise.withResolvers<string>();
  const second = project.pull({ onWait: waited.resolve });
  let hasEnded = false;
  const stored = eventually(async () => hasEnded || (await store.versions("x")).length === 2);
  assert.equal(await Promise.race([waited.promise, stored.then(() => "stored meanwhile")]), "x");
  blocked?.release();
  await first;
  const [result] = await second;
  hasEnded = true;
  assert.ok(result !== undefined && result.outcome !== "failed");
  assert.equal((await readLock(lockfile)).get("x")?.sha256, result.stored.manifest.sha256);
  await stored;
});

test("an abort ends a pull that waits for another process to change the lockfile", async t => {
  const { project } = await projectAt(t, (_, response) => response.end(OBO));
  const store = new FolderOntologyStore(join(project.folder, "ontologies"));
  const held = await FileLock.tryAcquire(lockPathOf(join(project.folder, "ontologies.lock.json")));
  t.after(() => held?.release());
  const interrupt = new AbortController();
  const pull = project.pull({ signal: interrupt.signal });
  await eventually(async () => (await store.versions("x")).length === 1);
  interrupt.abort(new Error("interrupted"));
  await assert.rejects(pull, { message: "interrupted" });
});

test("a pinned version that is stored already is locked while no other process removes it", async t => {
  const { project, server } = await projectAt(t, (_, response) => response.end(OBO));
  await project.pull();
  const source = `resolver: direct, version: "1", extras: { url: "${server.origin}/x.obo" }`;
  await project.write(`allow_private: true\nsources:\n  x: { ${source} }\n`);
  const store = new FolderOntologyStore(join(project.folder, "ontologies"));
  const other = await FileLock.tryAcquire(store.work.lockPath("x"));
  const waited = Promise.withResolvers<string>();
  const pulled = project.pull({ onWait: waited.resolve });
  assert.equal(await Promise.race([waited.promise, pulled.then(() => "pulled meanwhile")]), "x");
  for (const version of await store.versions("x")) await store.remove(version);
  other?.release();
  const [result] = await pulled;
  assert.equal(result?.outcome, "fetched");
});

test("pulls with one lockfile and different stores do not lose entries of each other", async t => {
  const { project, server } = await projectAt(t, (_, response) => response.end(OBO));
  const ids = ["a", "b", "c", "d", "e", "f"];
  const sources = ids
    .map(id => `  ${id}: { resolver: direct, extras: { url: "${server.origin}/${id}.obo" } }\n`)
    .join("");
  const pullInto = async (store: string, id: string) => {
    const settings = await loadOntofetchSettings({ store }, {}, project.folder);
    const ontofetch = await Ontofetch.open(settings, { env: {} });
    try {
      return await ontofetch.pull(settings.sources.filter(source => source.id === id));
    } finally {
      await ontofetch.close("test");
    }
  };
  await project.write(`allow_private: true\nsources:\n${sources}`);
  await Promise.all(ids.map(id => pullInto(join(project.folder, `store-${id}`), id)));
  const lock = await readLock(join(project.folder, "ontologies.lock.json"));
  assert.deepEqual([...lock.keys()], ids);
});

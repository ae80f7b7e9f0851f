/** What every store of ontologies does, whether it is a folder or a bucket. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { sha256Of } from "../../src/files/file-hash.ts";
import type { OntologyManifest } from "../../src/ontology/ontology-manifest.ts";
import type { OntologyStore, StoredVersion } from "../../src/ontology/ontology-store.ts";

export interface ContractStore {
  readonly store: OntologyStore;
  /** A folder on this machine for files that are to be stored. */
  readonly folder: string;
  /** Replaces the bytes of a stored file, or deletes it. */
  readonly damage: (version: StoredVersion, text: string | undefined) => Promise<void>;
}

export function manifestOf(text: string, fields: Partial<OntologyManifest> = {}): OntologyManifest {
  return {
    ...{ manifest_version: 1, id: "hp", version: "2026-11-01", version_in_file: null, resolver: "direct" },
    ...{ service: "direct", url: "https://example.org/hp.obo", final_url: "https://example.org/hp.obo" },
    ...{ versioned_url: null, announced_version: null, format: "obo", file: "hp.obo", received: null, etag: null },
    ...{ bytes: Buffer.byteLength(text), sha256: sha256Of(text), last_modified: null, licence: null, facts: null },
    ...{ checks: { depth: "full" }, fetched_at: "2026-11-02T00:00:00.000Z", checked_at: "2026-11-02T00:00:00.000Z" },
    ...fields,
  };
}

/** Stores a text as a version. */
export function addText(
  { store, folder }: Pick<ContractStore, "store" | "folder">,
  text: string,
  fields: Partial<OntologyManifest> = {},
): Promise<StoredVersion> {
  const file = join(folder, `${sha256Of(text + JSON.stringify(fields))}.part`);
  writeFileSync(file, text);
  return store.add(file, manifestOf(text, fields));
}

export function storeContract(name: string, open: (t: TestContext) => Promise<ContractStore>): void {
  test(`${name}: a version is found by its id and hash, and the file is where the path says`, async t => {
    const opened = await open(t);
    const { store, folder } = opened;
    await store.prepare();
    assert.deepEqual([await store.ids(), await store.versions("hp")], [[], []]);
    const old = await addText(opened, "one");
    const other = await addText(opened, "two", { version: "2026-12-01", fetched_at: "2026-12-02T00:00:00.000Z" });
    await addText(opened, "three", { id: "go", file: "go.obo" });
    assert.deepEqual(await store.ids(), ["go", "hp"]);
    assert.deepEqual(await store.versions("hp"), [other, old]);
    assert.deepEqual(await store.findByHash("hp", sha256Of("one")), old);
    assert.equal(await store.findByHash("hp", sha256Of("three")), undefined);
    assert.equal(readFileSync(await store.localFile(old), "utf8"), "one");
    assert.ok(old.path.startsWith(store.root) && old.path.endsWith("/hp.obo"), old.path);
    assert.deepEqual(await store.foldersWithoutManifest("hp"), []);
    assert.equal(existsSync(join(folder, `${sha256Of(`one${JSON.stringify({})}`)}.part`)), false);
  });

  test(`${name}: unpacked files and copies of a killed pull are leftovers, and a partial file is not`, async t => {
    const { store } = await open(t);
    await store.prepare();
    const partial = store.work.partialPath("hp");
    mkdirSync(dirname(partial), { recursive: true });
    const leftovers = [".1", ".2", ".copy", ".copy.1", ".copy.2"].map(ending => partial + ending);
    for (const path of [partial, ...leftovers]) writeFileSync(path, "");
    await store.removeLeftovers("hp");
    assert.deepEqual(leftovers.filter(existsSync), []);
    assert.ok(existsSync(partial));
  });

  test(`${name}: equal bytes of a version are stored once, and other bytes beside them`, async t => {
    const opened = await open(t);
    const { store } = opened;
    const first = await addText(opened, "one");
    const again = await addText(opened, "one", { checked_at: "2026-12-02T00:00:00.000Z" });
    assert.deepEqual([again.path, again.folder], [first.path, first.folder]);
    const changed = await addText(opened, "changed");
    assert.notEqual(changed.folder, first.folder);
    const stored = await store.versions("hp");
    assert.deepEqual(stored.map(({ folder }) => folder).sort(), [first.folder, changed.folder].sort());
    assert.deepEqual(await store.findByHash("hp", sha256Of("one")), again);
    for (const version of stored) assert.equal(await store.isIntact(version), true);
  });

  test(`${name}: a changed manifest is read by the next process, and a removed version is gone`, async t => {
    const opened = await open(t);
    const { store } = opened;
    const version = await addText(opened, "one");
    const checked = await store.updateManifest(version, { checked_at: "2026-12-24T00:00:00.000Z" });
    assert.deepEqual(await store.versions("hp"), [checked]);
    await store.localFile(checked);
    await store.remove(checked);
    await store.removeLeftovers("hp");
    assert.deepEqual(await store.versions("hp"), []);
    assert.equal(await store.hashOf(checked), undefined);
    assert.deepEqual(await addText(opened, "one"), version);
  });

  test(`${name}: a changed or missing file is noticed, and a pull replaces it`, async t => {
    const opened = await open(t);
    const { store, damage } = opened;
    const version = await addText(opened, "one");
    await damage(version, "two");
    assert.equal(await store.hashOf(version), sha256Of("two"));
    await damage(version, undefined);
    assert.deepEqual([await store.hashOf(version), await store.isIntact(version)], [undefined, false]);
    assert.equal(await store.findByHash("hp", sha256Of("one")), undefined);
    const again = await addText(opened, "one");
    assert.deepEqual(again, version);
    assert.deepEqual([await store.hashOf(again), await store.isIntact(again)], [sha256Of("one"), true]);
  });
}

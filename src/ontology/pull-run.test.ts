import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { DownloadError } from "../errors.ts";
import { systemTime } from "../time/system-time.ts";
import { FolderOntologyStore } from "./folder-ontology-store.ts";
import { LockWriter } from "./lock-writer.ts";
import { type LockEntry, readLock, writeLock } from "./lockfile.ts";
import { loadOntofetchSettings } from "./ontofetch-settings.ts";
import type { OntologyManifest } from "./ontology-manifest.ts";
import type { PlanEntry } from "./planner.ts";
import { PullRun } from "./pull-run.ts";
import { Puller, type PullOutcome } from "./puller.ts";
import type { RedirectFollower } from "./redirect-follower.ts";
import type { Source } from "./resolver.ts";

const SOURCE: Source = { id: "x", resolver: "direct", targetFormats: [], extras: { url: "https://example.org/x.obo" } };

test("a source that fails keeps the files that it imports in the lockfile", async () => {
  const folder = temporaryFolder("ontofetch");
  const store = new FolderOntologyStore(folder);
  await writeFile(join(folder, "sources.yaml"), "sources: {}\n");
  const settings = await loadOntofetchSettings({}, {}, folder);
  const lockOf = (importedBy: readonly string[]): LockEntry => ({
    ...{ resolver: "direct", target_formats: [], extras: {}, url: "https://example.org/x.obo", versioned_url: null },
    ...{ version: "1", announced_version: null, format: "obo", bytes: 1, received_bytes: 1, sha256: "0".repeat(64) },
    ...{ etag: null, last_modified: null, licence: null, imported_by: [...importedBy] },
  });
  const lock = new Map([
    ["x", lockOf([])],
    ["y", lockOf(["x"])],
    ["z", lockOf(["y"])],
    ["gone", lockOf([])],
    ["import-of-gone", lockOf(["gone"])],
  ]);
  await writeLock(settings.lockfile, lock);
  const lockWriter = new LockWriter(settings.lockfile, systemTime);
  const follower: RedirectFollower = Object.create(null);
  const puller = new Puller({ follower, store, time: systemTime, check: "full", maxFileBytes: 1 });
  const source = { ...SOURCE, imports: true };
  const plan = async () => [{ kind: "refused", source, reason: "unavailable", message: "no response" } as const];
  const run = new PullRun({ settings, store, puller, lockWriter, plan }, { all: true });
  const [result] = await run.run([source]);
  assert.equal(result?.outcome, "failed");
  assert.deepEqual([...(await readLock(settings.lockfile)).keys()], ["x", "y", "z"]);
});

/** A manifest of a file at this URL that imports others. */
function manifestOf(id: string, url: string, imports: readonly string[]): OntologyManifest {
  const counts = {
    classes: 0,
    properties: 0,
    individuals: 0,
    concepts: 0,
    terms: 0,
    deprecated_terms: 0,
    languages: {},
  };
  return {
    ...{ manifest_version: 1, id, version: "1", version_in_file: null, resolver: "direct", service: "direct", url },
    ...{ final_url: url, versioned_url: null, announced_version: null, format: "obo", file: `${id}.obo`, bytes: 1 },
    ...{ sha256: "0".repeat(64), received: null, etag: null, last_modified: null, licence: null },
    ...{ checks: { depth: "full" }, fetched_at: "2026-11-18T07:00:00.000Z", checked_at: "2026-11-18T07:00:00.000Z" },
    facts: {
      ...{ ontology_iri: url, version_iri: null, version_info: null, date: null, title: null, licence: null, imports },
      ...counts,
    },
  };
}

test("the lockfile names every importer of a file: of later rounds, of sources not pulled, and of failed ones", async () => {
  const folder = temporaryFolder("ontofetch");
  const store = new FolderOntologyStore(folder);
  await store.prepare();
  await writeFile(join(folder, "sources.yaml"), "sources: {}\n");
  const settings = await loadOntofetchSettings({}, {}, folder);
  const lockWriter = new LockWriter(settings.lockfile, systemTime);
  // x imports shared; y imports middle, which imports shared.
  const imports: Readonly<Record<string, readonly string[]>> = { x: ["shared"], y: ["middle"], middle: ["shared"] };
  const urlOf = (name: string) => `https://example.org/${name}`;
  const sourceOf = (id: string): Source => ({ ...SOURCE, id, extras: { url: urlOf(id) }, imports: true });
  const pull = async (sources: readonly string[], isAll: boolean, failing = "") => {
    class ImportingPuller extends Puller {
      override async pull({ url, source: { id } }: PlanEntry): Promise<PullOutcome> {
        if (id === failing) throw new DownloadError("incomplete");
        const manifest = manifestOf(id, url, (imports[url.slice(urlOf("").length)] ?? []).map(urlOf));
        return { outcome: "fetched", stored: { id, folder: "1", path: "", manifest }, requests: 1, resumedBytes: 0 };
      }
    }
    const follower: RedirectFollower = Object.create(null);
    const puller = new ImportingPuller({ follower, store, time: systemTime, check: "full", maxFileBytes: 1 });
    const plan = async (wanted: readonly Source[]) =>
      wanted.map((source): PlanEntry => {
        const unknown = { format: undefined, version: undefined, licence: undefined };
        const url = source.extras["url"] ?? "";
        return { kind: "fetch", source, service: "direct", url, accept: "*/*", notes: [], ...unknown };
      });
    await new PullRun({ settings, store, puller, lockWriter, plan }, { all: isAll }).run(sources.map(sourceOf));
    const lock = await readLock(settings.lockfile);
    const [, importers = []] =
      [...lock].map(([id, entry]) => [id, entry.imported_by] as const).find(([id]) => id.startsWith("shared-")) ?? [];
    return importers.map(id => id.replace(/-[0-9a-f]{8}$/, ""));
  };
  assert.deepEqual(await pull(["x", "y"], true), ["middle", "x"]);
  assert.deepEqual(await pull(["y"], false), ["middle", "x"]);
  assert.deepEqual(await pull(["x", "y"], true, "x"), ["middle", "x"]);
  assert.deepEqual(await pull(["y"], true), ["middle"]);
  // Two pulls at the same time.
  await rm(settings.lockfile);
  await Promise.all([pull(["x"], false), pull(["y"], false)]);
  assert.deepEqual(await pull([], false), ["middle", "x"]);
});

test("an error of a source is reported in its result, and a bug of the program rejects the pull", async () => {
  const folder = temporaryFolder("ontofetch");
  const store = new FolderOntologyStore(folder);
  await writeFile(join(folder, "sources.yaml"), "sources: {}\n");
  const settings = await loadOntofetchSettings({}, {}, folder);
  const lockWriter = new LockWriter(settings.lockfile, systemTime);
  const entry: PlanEntry = {
    kind: "fetch",
    source: SOURCE,
    service: "direct",
    url: "https://example.org/x.obo",
    accept: "*/*",
    format: undefined,
    version: undefined,
    licence: undefined,
    notes: [],
  };
  const pullWith = (error: Error) => {
    class FailingPuller extends Puller {
      override async pull(): Promise<PullOutcome> {
        throw error;
      }
    }
    const follower: RedirectFollower = Object.create(null);
    const puller = new FailingPuller({ follower, store, time: systemTime, check: "full", maxFileBytes: 1 });
    const plan = async () => [entry];
    return new PullRun({ settings, store, puller, lockWriter, plan }, {}).run([SOURCE]);
  };
  const failures = [
    new DownloadError("incomplete"),
    Object.assign(new Error("connect"), { code: "ECONNREFUSED" }),
    new TypeError("fetch failed", { cause: Object.assign(new Error("connect"), { code: "ECONNREFUSED" }) }),
  ];
  for (const failure of failures) {
    const [result] = await pullWith(failure);
    assert.equal(result?.outcome, "failed", failure.message);
  }
  const bug = new TypeError("x is not a function");
  await assert.rejects(pullWith(bug), bug);
});

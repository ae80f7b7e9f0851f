import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { DownloadError } from "../errors.ts";
import { systemTime } from "../time/system-time.ts";
import { FolderOntologyStore } from "./folder-ontology-store.ts";
import { LockWriter } from "./lock-writer.ts";
import { type LockEntry, readLock, writeLock } from "./lockfile.ts";
import { loadOntofetchSettings } from "./ontofetch-settings.ts";
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
  const lockWriter = new LockWriter(settings.lockfile, store.work, systemTime);
  const follower: RedirectFollower = Object.create(null);
  const puller = new Puller({ follower, store, time: systemTime, check: "full", maxFileBytes: 1 });
  const source = { ...SOURCE, imports: true };
  const plan = async () => [{ kind: "refused", source, reason: "unavailable", message: "no response" } as const];
  const run = new PullRun({ settings, store, puller, lockWriter, plan }, { isAll: true });
  const [result] = await run.run([source]);
  assert.equal(result?.outcome, "failed");
  assert.deepEqual([...(await readLock(settings.lockfile)).keys()], ["x", "y", "z"]);
});

test("an error of a source is reported in its result, and a bug of the program rejects the pull", async () => {
  const folder = temporaryFolder("ontofetch");
  const store = new FolderOntologyStore(folder);
  await writeFile(join(folder, "sources.yaml"), "sources: {}\n");
  const settings = await loadOntofetchSettings({}, {}, folder);
  const lockWriter = new LockWriter(settings.lockfile, store.work, systemTime);
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

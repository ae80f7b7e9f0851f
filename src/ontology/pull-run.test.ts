import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { DownloadError } from "../errors.ts";
import { systemTime } from "../time/system-time.ts";
import { FolderOntologyStore } from "./folder-ontology-store.ts";
import { LockWriter } from "./lock-writer.ts";
import { loadOntofetchSettings } from "./ontofetch-settings.ts";
import type { PlanEntry } from "./planner.ts";
import { PullRun } from "./pull-run.ts";
import { Puller, type PullOutcome } from "./puller.ts";
import type { RedirectFollower } from "./redirect-follower.ts";
import type { Source } from "./resolver.ts";

const SOURCE: Source = { id: "x", resolver: "direct", targetFormats: [], extras: { url: "https://example.org/x.obo" } };

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

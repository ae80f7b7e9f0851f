import { createHash } from "node:crypto";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { TestContext } from "node:test";
import type { AttemptRecord, ListedWork, Manifest } from "../../src/harvest/manifest/manifest.ts";
import { SqliteManifest } from "../../src/harvest/manifest/sqlite/sqlite-manifest.ts";
import type { Reason } from "../../src/harvest/reason.ts";
import type { Candidate, Finding, Resolver } from "../../src/harvest/resolvers/resolver.ts";
import { type HarvestRun, openRun, type RunOptions } from "../../src/harvest/run.ts";
import type { Work } from "../../src/harvest/work.ts";
import type { Hub } from "../../src/http/hub.ts";
import { systemTime } from "../../src/time/system-time.ts";

export function sha256(bytes: string | Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** A small file that passes as a PDF; `text` makes it unique. */
export function pdf(text: string, bytes = 400): Buffer {
  const start = `%PDF-1.4\n% ${text}\n1 0 obj <</Type /Pages /Kids [2 0 R]>> endobj 2 0 obj <</Type /Page>> endobj\n`;
  const end = "\nxref\n0 1\ntrailer <</Root 1 0 R>>\nstartxref\n0\n%%EOF\n";
  return Buffer.from(start + " ".repeat(Math.max(0, bytes - start.length - end.length)) + end);
}

export function workCalled(name: string): Work {
  return { key: `doi:10.5555/${name}`, ids: { doi: `10.5555/${name}` } };
}

/** A resolver whose service returns JSON: candidates, or a finding. */
export function indexAt(origin: string, name = "index"): Resolver {
  return {
    name,
    needs: [],
    requestFor: ({ ids }) =>
      ids.doi === undefined ? undefined : { url: `${origin}/${name}/${ids.doi}`, role: "metadata" },
    parse: ({ status, body }): Finding => {
      if (status === 404) return { kind: "none", reason: "unknown-work" };
      if (status >= 500) return { kind: "failure", reason: "unavailable", message: `status ${status}` };
      const parsed: unknown = JSON.parse(body);
      return Array.isArray(parsed) ? { kind: "found", candidates: parsed as Candidate[] } : (parsed as Finding);
    },
  };
}

/** The database of a manifest file, for what only tests read or break. */
export function databaseOf(manifest: Manifest): DatabaseSync {
  if (manifest instanceof SqliteManifest) return manifest.db;
  throw new TypeError(`${manifest.name} is not a file`);
}

export interface TestRun {
  readonly run: HarvestRun;
  readonly attempts: AttemptRecord[];
  readonly settled: Map<string, Reason>;
}

export type TestRunOptions = Partial<RunOptions> & { readonly hub: Hub; readonly resolvers: readonly Resolver[] };

export async function runFor(t: TestContext, folder: string, options: TestRunOptions): Promise<TestRun> {
  const attempts: AttemptRecord[] = [];
  const settled = new Map<string, Reason>();
  const run = await openRun({
    time: systemTime,
    folder,
    manifest: join(folder, "manifest.sqlite"),
    command: "test",
    order: () => options.resolvers,
    onAttempt: (_: ListedWork, attempt) => attempts.push(attempt),
    onSettled: ({ key }, _, reason) => settled.set(key, reason),
    random: () => 0,
    ...options,
  });
  t.after(async () => {
    if (databaseOf(run.manifest).isOpen) await run.close("ended");
  });
  return { run, attempts, settled };
}

/** Runs until every work is settled, and closes the run. */
export async function complete({ run }: TestRun, works: readonly Work[], isRefresh = false): Promise<void> {
  await run.addWorks(works, { isRefresh });
  run.pipeline.inputEnded();
  await run.pipeline.run();
  await run.close("ended");
}

/** Polls a condition; the time limit of the test runner ends an endless wait. */
export async function eventually(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await systemTime.sleep(10);
}

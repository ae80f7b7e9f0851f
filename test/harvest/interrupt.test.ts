import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { systemTime } from "../../src/time/system-time.ts";
import { eventually, folderFor } from "./kit.ts";
import { filesIn, internetFor, isQuick, keyOf, startDocstokg } from "./processes.ts";

const SLOW = [{ host: "*", act: "slow", bytesPerSecond: 200_000 }] as const;

test("Ctrl-C lets what is under way finish and exits with 130; retry goes on from there", async t => {
  const internet = await internetFor(t, { seed: 3, works: 62, script: SLOW });
  const works = internet.works.filter(isQuick);
  const folder = folderFor(t);
  const flags = ["--resolvers", "openalex", "--json", "--workers", "4"];
  const first = startDocstokg(t, internet, folder, ["run", "--input", "-", ...flags], works.map(keyOf).join("\n"));
  await eventually(() => filesIn(folder).length >= 2);
  first.child.kill("SIGINT");
  const { code, stdout, stderr } = await first.ended;
  assert.equal(code, 130, stderr);
  assert.match(stderr, /Waiting for \d+ requests? in flight; press Ctrl-C again to stop now\./);
  const summary = JSON.parse(stdout);
  assert.equal(summary.wasInterrupted, true);
  assert.ok(summary.works.pending > 0);
  assert.equal(summary.works.done, filesIn(folder).length);

  const second = await startDocstokg(t, internet, folder, ["retry", ...flags], "").ended;
  assert.equal(second.code, 0, second.stderr);
  assert.equal(JSON.parse(second.stdout).works.done, works.length - summary.works.done);
});

test("a second Ctrl-C stops at once, and an input that never ends is no reason to stay", async t => {
  const internet = await internetFor(t, { seed: 3, works: 31 });
  const work = internet.works.find(isQuick);
  assert.ok(work);
  await internet.start({ host: new URL(work.copies[0]?.url ?? "").host, act: "slow", bytesPerSecond: 500 });
  const folder = folderFor(t);
  // The list is left open, as a terminal would leave it.
  const { child, ended, stderrSoFar } = startDocstokg(t, internet, folder, [
    "run",
    keyOf(work),
    "--input",
    "-",
    "--resolvers",
    "openalex",
  ]);
  await eventually(() => partsIn(folder) > 0);
  child.kill("SIGINT");
  await eventually(() => stderrSoFar().includes("Ctrl-C again"));
  // Within half a second of the first it would count as the same one. The first was received before its message came.
  await systemTime.sleep(501);
  child.kill("SIGINT");
  assert.equal((await ended).code, 130);
  assert.deepEqual(filesIn(folder), []);
});

function partsIn(folder: string): number {
  try {
    return readdirSync(join(folder, "papers", ".parts")).length;
  } catch {
    return 0;
  }
}

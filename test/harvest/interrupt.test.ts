import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../temporary-folder.ts";
import { internetFor } from "../testing/internet-kit.ts";
import { eventually } from "./kit.ts";
import { filesIn, isQuick, keyOf, startDocstokg } from "./processes.ts";

test("Ctrl-C finishes the requests in flight and exits with 130, and retry continues", async t => {
  const internet = await internetFor(t, { seed: 3, works: 62 });
  // Too slow for the run to end by itself before it is interrupted.
  const slow = await internet.start({ host: "*", effect: "slow", bytesPerSecond: 50_000 });
  const works = internet.works.filter(isQuick);
  const folder = temporaryFolder("harvest");
  const flags = ["--resolvers", "openalex", "--json", "--workers", "4"];
  const first = startDocstokg(t, internet, folder, ["run", "--input", "-", ...flags], works.map(keyOf).join("\n"));
  await eventually(() => filesIn(folder).length >= 2);
  first.child.kill("SIGINT");
  const { code, stdout, stderr } = await first.ended;
  assert.equal(code, 130, stderr);
  assert.match(stderr, /Stopping: waiting up to 1\.5 s for \d+ requests? in flight; Ctrl-C again stops now\./);
  const summary = JSON.parse(stdout);
  assert.equal(summary.wasInterrupted, true);
  assert.ok(summary.works.pending > 0);
  assert.equal(summary.works.done, filesIn(folder).length);

  await slow.stop();
  const second = await startDocstokg(t, internet, folder, ["retry", ...flags], "").ended;
  assert.equal(second.code, 0, second.stderr);
  assert.equal(JSON.parse(second.stdout).works.done, works.length - summary.works.done);
});

test("a second Ctrl-C stops at once, even while the input is open", async t => {
  const internet = await internetFor(t, { seed: 3, works: 31 });
  const work = internet.works.find(isQuick);
  assert.ok(work);
  await internet.start({ host: new URL(work.copies[0]?.url ?? "").host, effect: "slow", bytesPerSecond: 1 });
  const folder = temporaryFolder("harvest");
  // stdin stays open, as in a terminal.
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
  // Signals within 500 ms of the first count as the same Ctrl-C; a later one ends the run.
  const again = setInterval(() => child.kill("SIGINT"), 50);
  t.after(() => clearInterval(again));
  const { code, signal } = await ended;
  // A signal that arrives while the process exits ends it by itself; a shell shows 130 for both.
  assert.ok(code === 130 || signal === "SIGINT", `${code} ${signal}`);
  assert.deepEqual(filesIn(folder), []);
});

test("one Ctrl-C ends a run although a body arrives byte by byte, and the rest stays pending", async t => {
  const internet = await internetFor(t, { seed: 3, works: 31 });
  const work = internet.works.find(isQuick);
  assert.ok(work);
  await internet.start({ host: new URL(work.copies[0]?.url ?? "").host, effect: "slow", bytesPerSecond: 1 });
  const folder = temporaryFolder("harvest");
  const args = ["run", keyOf(work), "--resolvers", "openalex", "--json"];
  const { child, ended } = startDocstokg(t, internet, folder, args, "");
  await eventually(() => partsIn(folder) > 0);
  child.kill("SIGINT");
  const { code, stdout, stderr } = await ended;
  assert.equal(code, 130, stderr);
  assert.equal(JSON.parse(stdout).works.pending, 1);
});

function partsIn(folder: string): number {
  try {
    return readdirSync(join(folder, "papers", ".parts")).length;
  } catch {
    return 0;
  }
}

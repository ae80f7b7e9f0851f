import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { systemTime } from "../../src/time/system-time.ts";
import { eventually, folderFor } from "./kit.ts";
import { filesIn, internetFor, isQuick, keyOf, startDocstokg } from "./processes.ts";

const SLOW = [{ host: "*", effect: "slow", bytesPerSecond: 200_000 }] as const;

test("Ctrl-C finishes the requests in flight and exits with 130, and retry continues", async t => {
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

test("a second Ctrl-C stops at once, even while the input is open", async t => {
  const internet = await internetFor(t, { seed: 3, works: 31 });
  const work = internet.works.find(isQuick);
  assert.ok(work);
  await internet.start({ host: new URL(work.copies[0]?.url ?? "").host, effect: "slow", bytesPerSecond: 500 });
  const folder = folderFor(t);
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
  // A second signal within 500 ms counts as the same Ctrl-C; the message proves that the first was received.
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

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openManifest } from "../../src/harvest/manifest/manifest.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { internetFor } from "../testing/internet-kit.ts";
import { databaseOf, eventually, sha256 } from "./kit.ts";
import { filesIn, isQuick, keyOf, startDocstokg } from "./processes.ts";

test("a run that is killed at any time loses no finished file, and the next run continues", async t => {
  // Slow, so that downloads are in flight when the process is killed.
  const script = [{ host: "*", effect: "slow", bytesPerSecond: 150_000 }] as const;
  const internet = await internetFor(t, { seed: 7, works: 93, script });
  const works = internet.works.filter(isQuick);
  const list = works.map(keyOf).join("\n");
  const folder = temporaryFolder("harvest");
  const args = ["run", "--input", "-", "--resolvers", "openalex", "--quiet", "--json"];
  const finished = new Map<string, string>();

  for (const enough of [1, works.length / 3, (works.length * 2) / 3]) {
    const { child, ended } = startDocstokg(t, internet, folder, args, list);
    await Promise.race([eventually(() => filesIn(folder).length >= enough), ended]);
    child.kill("SIGKILL");
    const { signal, code } = await ended;
    // A run may end by itself before it is killed, if this process is starved for seconds.
    assert.ok(signal === "SIGKILL" || code === 0, `${signal} ${code}`);
    if (signal === null) t.diagnostic("the run ended before it was killed");
    const manifest = await openManifest(join(folder, "papers", "manifest.sqlite"), systemTime);
    assert.equal(databaseOf(manifest).prepare("PRAGMA integrity_check").get()?.["integrity_check"], "ok");
    const done = databaseOf(manifest).prepare("SELECT key, path, sha256 FROM works JOIN files USING (sha256)").all();
    for (const { key, path, sha256: hash } of done) {
      assert.equal(sha256(readFileSync(join(folder, "papers", String(path)))), hash);
      finished.set(String(key), String(hash));
    }
    await manifest.close();
  }
  assert.ok(finished.size > 0, `${finished.size} of ${works.length}`);

  const { code, stdout, stderr } = await startDocstokg(t, internet, folder, args, list).ended;
  assert.equal(code, 0, `${stderr}${stdout}`);
  assert.equal(JSON.parse(stdout).works.done, works.length);
  const manifest = await openManifest(join(folder, "papers", "manifest.sqlite"), systemTime);
  t.after(() => manifest.close());
  const rows = databaseOf(manifest).prepare("SELECT key, path, sha256 FROM works JOIN files USING (sha256)").all();
  const got = new Map(rows.map(({ key, sha256: hash }) => [String(key), String(hash)]));
  assert.deepEqual(got, new Map(works.map(work => [keyOf(work), work.file.sha256])));
  for (const { path, sha256: hash } of rows)
    assert.equal(sha256(readFileSync(join(folder, "papers", String(path)))), hash);
  assert.deepEqual(filesIn(folder).length, works.length);
  assert.deepEqual(readdirSync(join(folder, "papers", ".parts")), []);
  // Files that were finished before a kill are not requested again.
  const fetchedTwice = databaseOf(manifest)
    .prepare(
      "SELECT key FROM attempts JOIN works ON works.id = work GROUP BY key HAVING sum(attempts.reason = 'ok') > 1",
    )
    .all();
  assert.deepEqual(fetchedTwice, []);
});

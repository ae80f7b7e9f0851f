import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { systemTime } from "../../src/time/system-time.ts";
import { mostWithin } from "../http/write-stamps.ts";
import { internetFor, projectFor } from "./kit.ts";
import { pullInProcess } from "./pull-in-process.ts";

const HOST = "files.ontologies.example";
const PROCESSES = 4;
const RATE = 3;

test("four concurrent pulls share one limit, and each file is downloaded by one of them", async t => {
  const internet = await internetFor(t);
  const files = ["fern.ofn", "fern.owx", "fern.json", "fern.owl.zip", "finch.ttl", "titan.obo"];
  const ids = Array.from({ length: 9 }, (_, index) => `copy-${index + 1}`);
  const sources = ids.map((id, index) => {
    const url = `https://${HOST}/${files[index % files.length]}`;
    return `  ${id}: { resolver: direct, extras: { url: "${url}" } }`;
  });
  const project = await projectFor(
    internet,
    `ratelimit: { default: ${RATE}/second, shared_dir: shared }\nsources:\n${sources.join("\n")}\n`,
  );
  const reports = await Promise.all(
    Array.from({ length: PROCESSES }, () => pullInProcess(project.folder, internet.network)),
  );

  for (const id of ids) {
    const [first, ...others] = reports.map(({ outcomes }) => outcomes[id]).sort();
    assert.equal(first, "fetched", id);
    // A process that started after the file was complete sends a conditional request.
    for (const other of others) assert.ok(other === "shared" || other === "unchanged", `${id}: ${other}`);
  }
  const { hosts } = await internet.ledger();
  assert.equal(hosts[HOST]?.statuses["200"], ids.length);
  const lock = JSON.parse(await readFile(join(project.folder, "ontologies.lock.json"), "utf8"));
  assert.deepEqual(Object.keys(lock.ontologies), [...ids].sort());
  // A process without CPU time may lose the store for a moment and then uses its own share (law S4).
  // test/http/shared-limits.test.ts checks the limit without this exception.
  if (reports.some(({ outages }) => outages > 0)) return t.diagnostic("a process lost the store: limit not checked");
  const most = mostWithin(
    reports.flatMap(({ writesUs }) => writesUs),
    1_000_000,
  );
  assert.ok(most <= RATE, `${most} in a second`);
});

test("a process that starts during the Retry-After of another process sends nothing until it ends", async t => {
  const retryAfterS = 2;
  const internet = await internetFor(t, {
    script: [{ effect: "throttle", host: HOST, retryAfterS, times: 1 }],
  });
  const settings = (shared: string) =>
    `ratelimit: { default: 5/second, shared_dir: ${shared} }\n` +
    `sources:\n  f: { resolver: direct, extras: { url: "https://${HOST}/fern.ofn" } }\n`;
  const one = await projectFor(internet, settings("shared"));
  const other = await projectFor(internet, settings(`${one.folder}/shared`));
  const first = pullInProcess(one.folder, internet.network);
  // If the cooldown has ended before it was seen, the first pull has ended too.
  await Promise.race([cooldownIn(join(one.folder, "shared", "ratelimits.db")), first]);
  const reports = await Promise.all([first, pullInProcess(other.folder, internet.network)]);
  for (const { outcomes } of reports) assert.deepEqual(outcomes, { f: "fetched" });
  const { statuses = {}, arrivalsMs = [] } = (await internet.ledger()).hosts[HOST] ?? {};
  assert.deepEqual(statuses, { 200: 2, 429: 1 });
  const [throttledMs = 0, nextMs = 0] = arrivalsMs;
  assert.ok(nextMs - throttledMs >= retryAfterS * 1000, `${nextMs - throttledMs} ms`);
});

/** Waits until another process has written a cooldown into the shared file. */
async function cooldownIn(file: string): Promise<void> {
  for (;;) {
    await systemTime.sleep(5);
    if (!existsSync(file)) continue;
    const db = new DatabaseSync(file, { readOnly: true, timeout: 60_000 });
    try {
      if (db.prepare("SELECT 1 FROM breaker_cooldowns WHERE host = ?").get(HOST) !== undefined) return;
    } catch (error) {
      // The other process creates the tables in a transaction that may not be committed yet.
      if (!/no such table/.test(String(error))) throw error;
    } finally {
      db.close();
    }
  }
}

test("memory use does not grow with the size of the file", async t => {
  // Large enough to see a file that is held in memory, small enough for every test run.
  const bytes = 100_000_000;
  const internet = await internetFor(t, { bigOntologyBytes: bytes });
  const project = await projectFor(
    internet,
    `sources:\n  titan: { resolver: direct, extras: { url: "https://${HOST}/titan.owl" } }\n`,
  );
  const { outcomes, liveBytes } = await pullInProcess(project.folder, internet.network, { measuresMemory: true });
  assert.deepEqual(outcomes, { titan: "fetched" });
  t.diagnostic(`${Math.round(liveBytes / 1e6)} MB in use for a file of ${bytes / 1e6} MB`);
  assert.ok(liveBytes > 0 && liveBytes < bytes, `${Math.round(liveBytes / 1e6)} MB`);
});

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

test("four pulls at once keep one limit together, and each file is fetched and written by one of them", async t => {
  const internet = await internetFor(t);
  const files = ["fern.ofn", "fern.owx", "fern.json", "fern.owl.zip", "finch.ttl", "titan.obo"];
  const ids = Array.from({ length: 9 }, (_, index) => `copy-${index + 1}`);
  const sources = ids.map((id, index) => {
    const url = `https://${HOST}/${files[index % files.length]}`;
    return `  ${id}: { resolver: direct, extras: { url: "${url}" } }`;
  });
  const project = await projectFor(
    t,
    internet,
    `ratelimit: { default: ${RATE}/second, shared_dir: shared }\nsources:\n${sources.join("\n")}\n`,
  );
  const reports = await Promise.all(
    Array.from({ length: PROCESSES }, () => pullInProcess(project.folder, internet.network)),
  );

  for (const id of ids) {
    const [first, ...others] = reports.map(({ outcomes }) => outcomes[id]).sort();
    assert.equal(first, "fetched", id);
    // A process that started when the file was complete asks whether it has changed.
    for (const other of others) assert.ok(other === "shared" || other === "unchanged", `${id}: ${other}`);
  }
  const { hosts } = await internet.ledger();
  assert.equal(hosts[HOST]?.statuses["200"], ids.length);
  const lock = JSON.parse(await readFile(join(project.folder, "ontologies.lock.json"), "utf8"));
  assert.deepEqual(Object.keys(lock.ontologies), [...ids].sort());
  // A starved process may lose its store for a moment, and then has a share of its own (law S4).
  // What holds with the store is judged without that exception in test/http/shared-limits.test.ts.
  if (reports.some(({ outages }) => outages > 0)) return t.diagnostic("a process lost the store: limit not judged");
  const most = mostWithin(
    reports.flatMap(({ writesUs }) => writesUs),
    1_000_000,
  );
  assert.ok(most <= RATE, `${most} in a second`);
});

test("a process that starts during another's Retry-After sends nothing until it has passed", async t => {
  const retryAfterS = 2;
  const internet = await internetFor(t, {
    script: [{ act: "throttle", host: HOST, retryAfterS, times: 1 }],
  });
  const settings = (shared: string) =>
    `ratelimit: { default: 5/second, shared_dir: ${shared} }\n` +
    `sources:\n  f: { resolver: direct, extras: { url: "https://${HOST}/fern.ofn" } }\n`;
  const one = await projectFor(t, internet, settings("shared"));
  const other = await projectFor(t, internet, settings(`${one.folder}/shared`));
  const first = pullInProcess(one.folder, internet.network);
  await cooldownIn(join(one.folder, "shared", "ratelimits.db"));
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
      // The tables are made by the other process, in a transaction of its own.
      if (!/no such table/.test(String(error))) throw error;
    } finally {
      db.close();
    }
  }
}

test("memory does not grow with the file", async t => {
  // Long enough that a file held in memory would be seen, short enough for every run of the tests.
  const bytes = 100_000_000;
  const internet = await internetFor(t, { bigOntologyBytes: bytes });
  const project = await projectFor(
    t,
    internet,
    `sources:\n  titan: { resolver: direct, extras: { url: "https://${HOST}/titan.owl" } }\n`,
  );
  const { outcomes, maxRssBytes } = await pullInProcess(project.folder, internet.network);
  assert.deepEqual(outcomes, { titan: "fetched" });
  assert.ok(maxRssBytes < 280_000_000, `${Math.round(maxRssBytes / 1e6)} MB for a file of ${bytes / 1e6} MB`);
});

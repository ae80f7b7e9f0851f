import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { internetFor, projectFor } from "./kit.ts";
import { pullInProcess } from "./pull-in-process.ts";

const HOST = "files.ontologies.example";
const PROCESSES = 4;
const RATE = 3;

test("four pulls at once keep one limit together, and each file is fetched and written by one of them", async t => {
  const internet = await internetFor(t);
  const files = ["fern.ofn", "fern.owx", "fern.json", "fern.owl.zip", "finch.ttl", "titan.obo"];
  const ids = Array.from({ length: 12 }, (_, index) => `copy-${index + 1}`);
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
    // A process that started when the file was there already asks whether it has changed.
    for (const other of others) assert.ok(other === "shared" || other === "unchanged", `${id}: ${other}`);
  }
  const { hosts } = await internet.ledger();
  const { statuses = {}, arrivalsMs = [] } = hosts[HOST] ?? {};
  assert.equal(statuses["200"], ids.length);
  for (const [index, at] of arrivalsMs.entries()) {
    // Half a second, because a server that is starved notices requests late; test/http/fleet measures to the millisecond.
    // Four that knew nothing of each other would send twelve at once.
    const within = arrivalsMs.slice(index).filter(other => other - at < 500).length;
    assert.ok(within <= RATE, `${within} within half a second of ${at}`);
  }
  const lock = JSON.parse(await readFile(join(project.folder, "ontologies.lock.json"), "utf8"));
  assert.deepEqual(Object.keys(lock.ontologies), [...ids].sort());
});

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

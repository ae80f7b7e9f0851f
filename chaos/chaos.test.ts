/** The program itself: processes, faults, counts and report. What the limits do under faults is not judged here. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runChaos } from "./chaos.ts";
import { reportText } from "./report.ts";

const OPTIONS = { mode: "share", seed: 1, seconds: 600, calmMs: [100, 200], onProgress: () => undefined } as const;

test("a run counts the writes of all processes, also of a killed one, and the server's arrivals", async () => {
  const report = await runChaos({ ...OPTIONS, store: "sqlite", faults: 2, only: ["kill", "stall"] });
  assert.deepEqual(report.episodes.map(({ fault }) => fault).sort(), ["kill", "stall", "start"]);
  assert.ok(report.written > 0);
  // A write of a killed process may not have left it.
  assert.ok(report.server.arrived > 0 && report.server.arrived <= report.written, JSON.stringify(report.server));
  assert.match(reportText(report), /^sqlite, mode share, seed 1: 2 faults in \d+ s, 4 processes, limit 20\/SECOND$/m);
});

test("an unknown kind of fault is an error that lists the known ones", async () => {
  const wrong = runChaos({ ...OPTIONS, store: "sqlite", faults: 1, only: ["kil"] });
  await assert.rejects(wrong, /--only: expected kill, suspend, stall, deleted, locked/);
});

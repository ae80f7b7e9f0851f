import assert from "node:assert/strict";
import { test } from "node:test";
import type { HubSnapshot } from "../http/hub.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { type LimitWait, WaitReporter, waitsOf } from "./wait-reporter.ts";

const key = (name: string, waiting: number, nextFreeMs: number) => ({
  key: name,
  waiting,
  nextFreeMs,
  constraint: { kind: "window", owner: name, limit: "48/HOUR" },
});
const snapshot = (value: object) => ({ keys: [], hosts: [], waiting: 0, ...value }) as unknown as HubSnapshot;

test("limits and cooldowns that requests wait for are listed, the longest first", () => {
  const found = waitsOf(
    snapshot({
      waiting: 7,
      keys: [key("raw.example", 6, 3_420_000), key("idle.example", 0, 60_000), key("soon.example", 1, 900)],
      hosts: [
        { host: "busy.example", reason: "retry-after", remainingMs: 30_000 },
        { host: "fine.example", reason: undefined, remainingMs: 0 },
      ],
    }),
  );
  assert.deepEqual(found, [
    { key: "raw.example", limit: "48/HOUR", waitMs: 3_420_000, waiting: 6 },
    { key: "busy.example", limit: "Retry-After of the server", waitMs: 30_000, waiting: 7 },
  ]);
});

test("a wait is reported after 5 seconds, then once a minute, and not after the end", async () => {
  const time = new FakeTime();
  const reports: LimitWait[] = [];
  const reporter = new WaitReporter(
    () => snapshot({ keys: [key("a", 1, 600_000)] }),
    time,
    wait => reports.push(wait),
  );
  reporter.start();
  await time.advance(4999);
  assert.equal(reports.length, 0);
  await time.advance(1);
  assert.equal(reports.length, 1);
  await time.advance(120_000);
  assert.equal(reports.length, 3);
  reporter.stop();
  await time.advance(600_000);
  assert.equal(reports.length, 3);
});

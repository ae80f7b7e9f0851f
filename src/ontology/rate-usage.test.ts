import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import type { HubEvent } from "../http/hub-options.ts";
import { appendRateUsage, type KeyUsage, RateUsageCounter, readRateUsage } from "./rate-usage.ts";

const key: KeyUsage = { key: "ols:a.example", granted: 3, refused: 0, waitedMs: 40, longestMs: 30, cooldowns: 0 };
const run = { at: "2026-11-16T00:00:00.000Z", pid: 1, command: "pull", keys: [key] };

test("the last runs are read back, and invalid lines are skipped", async () => {
  const file = join(temporaryFolder("ontofetch"), "below", "ratelimits.jsonl");
  assert.deepEqual(await readRateUsage(file, 5), []);
  await appendRateUsage(file, { ...run, pid: 0 });
  await appendRateUsage(file, run);
  await writeFile(file, "not JSON\nnull\n", { flag: "a" });
  await appendRateUsage(file, { ...run, pid: 2 });
  assert.deepEqual(await readRateUsage(file, 4), [run, { ...run, pid: 2 }]);
});

test("a pause before another attempt counts as waiting, once for each host", () => {
  const counter = new RateUsageCounter();
  const acquired = { event_type: "ratelimit.acquire", outcome: "granted", blocked_ms: 0 };
  for (const name of ["ols:a.example", "obo:a.example"]) counter.listen({ ...acquired, key: name } as HubEvent);
  counter.listen({ event_type: "http_retry", host: "a.example", delay_ms: 2000 } as HubEvent);
  assert.deepEqual(
    counter.keys().map(({ waitedMs }) => waitedMs),
    [0, 2000],
  );
});

test("a line with the earlier field name blockedMs is still read", async () => {
  const file = join(temporaryFolder("ontofetch"), "ratelimits.jsonl");
  const { waitedMs: blockedMs, ...others } = key;
  await writeFile(file, `${JSON.stringify({ ...run, keys: [{ ...others, blockedMs }] })}\n`);
  assert.deepEqual(await readRateUsage(file, 1), [run]);
});

/**
 * Law S4 with real processes and a real server: in mode `wait` no window over all processes holds more than the limit.
 * Judged by the stamps of the writes alone: recovery and reports depend on the speed of the machine.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { whyNoPostgres } from "../test/harvest/postgres-server.ts";
import { whyNoRedis } from "../test/stores/redis-server.ts";
import { runChaos } from "./chaos.ts";

const LIMIT = 20;
const OPTIONS = { mode: "wait", seed: 3, seconds: 1800, calmMs: [600, 900], onProgress: () => undefined } as const;

async function assertLimitIsKept(store: "redis" | "sqlite" | "postgres", only: readonly string[]): Promise<void> {
  const { episodes, written } = await runChaos({ ...OPTIONS, store, faults: only.length, only });
  assert.deepEqual(episodes.map(({ fault }) => fault).sort(), [...only, "start"].sort());
  assert.ok(written > 0);
  for (const { fault, detail, most } of episodes) assert.ok(most <= LIMIT, `${fault} ${detail}: ${most} in a second`);
}

test(
  "processes that are killed, suspended or disconnected from redis never exceed the limit in mode wait",
  {
    skip: whyNoRedis(),
  },
  () => assertLimitIsKept("redis", ["suspend", "partition-some", "partition-all", "start-without-store"]),
);

test(
  "processes that are suspended or disconnected from postgres, and a server that is killed, never exceed the limit in mode wait",
  { skip: whyNoPostgres() },
  () => assertLimitIsKept("postgres", ["suspend", "partition-some", "server-killed", "dropped"]),
);

test("processes on a file that is locked never exceed the limit in mode wait", () =>
  assertLimitIsKept("sqlite", ["suspend", "locked"]));

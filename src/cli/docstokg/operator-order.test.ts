import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createStoreFile, temporaryFolder } from "../../../test/cli/kit.ts";
import { PROCESS_PREFIX, PROCESS_RECORD_US } from "../../stores/process-record.ts";
import { SqliteStore } from "../../stores/sqlite/sqlite-store.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { docstokg } from "../docstokg.ts";
import { runProgram } from "../program.ts";
import { ACKNOWLEDGED_WITHIN_MS } from "./operator-order.ts";

/** A store in which a process is listed that answers no order. */
async function storeWithSilentProcess(time: FakeTime) {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const opened = await SqliteStore.open(store.slice("sqlite:".length), { time });
  const snapshot = { calls: 0, inFlight: 0, waiting: 0, keys: [], hosts: [], resolvers: [] };
  const next = { pid: 4711, machine: "a", program: "gone.js", startedMs: 0, writtenMs: time.wallMs(), snapshot };
  await opened.change(`${PROCESS_PREFIX}gone`, ({ nowUs }) => ({
    record: { next, keepUntilUs: nowUs + PROCESS_RECORD_US },
    result: undefined,
  }));
  await opened.close();
  return store;
}

test("the end of an order counts from the order, also if the command then waits for a process", async () => {
  const time = new FakeTime();
  const store = await storeWithSilentProcess(time);
  for (const [flags, end] of [
    [["limits", "hold", "api.crossref.org", "--for", "60s"], "heldUntil"],
    [["limits", "set", "api.crossref.org", "1/SECOND", "--for", "60s", "--reason", "quota"], "until"],
    [["breaker", "open", "api.crossref.org", "--for", "60s"], "openUntil"],
  ] as const) {
    const endMs = time.wallMs() + 60_000;
    let stdout = "";
    let isDone = false;
    const running = runProgram(docstokg, {
      argv: [...flags, "--json", "--store", store],
      env: {},
      stdout: { write: text => (stdout += text) },
      stderr: { write: text => assert.fail(text) },
      time,
    }).finally(() => {
      isDone = true;
    });
    while (!isDone) {
      if (time.nextTimerMs === ACKNOWLEDGED_WITHIN_MS) await time.advance(ACKNOWLEDGED_WITHIN_MS);
      await setImmediate();
    }
    assert.equal(await running, 1);
    assert.equal(JSON.parse(stdout)[end], new Date(endMs).toISOString(), flags.join(" "));
  }
});

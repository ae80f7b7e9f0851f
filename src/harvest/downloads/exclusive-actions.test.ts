import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { ExclusiveActions } from "./exclusive-actions.ts";

function actionsWithLog() {
  const actions = new ExclusiveActions();
  const log: string[] = [];
  const start = (name: string, ...keys: string[]) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const ended = actions.run(keys, () => {
      log.push(name);
      return promise;
    });
    return { ended, resolve, reject };
  };
  return { actions, log, start };
}

test("actions without a common key run at the same time, and others one after the other", async () => {
  const { actions, log, start } = actionsWithLog();
  const first = start("first", "a", "b");
  const second = start("second", "b", "c");
  const third = start("third", "c");
  const other = start("other", "d");
  await setImmediate();
  assert.deepEqual(log, ["first", "other"]);
  first.resolve("1");
  assert.equal(await first.ended, "1");
  await setImmediate();
  assert.deepEqual(log, ["first", "other", "second"]);
  second.resolve("2");
  third.resolve("3");
  other.resolve("4");
  assert.deepEqual(await Promise.all([second.ended, third.ended, other.ended]), ["2", "3", "4"]);
  await setImmediate();
  assert.equal(actions.size, 0, "nothing is kept of actions that have ended");
});

test("an action that fails rejects its own promise, and the next one runs", async () => {
  const { actions, log, start } = actionsWithLog();
  const failing = start("failing", "a");
  const next = start("next", "a");
  failing.reject(new Error("disk full"));
  await assert.rejects(failing.ended, /disk full/);
  next.resolve("done");
  assert.equal(await next.ended, "done");
  await setImmediate();
  assert.deepEqual([log, actions.size], [["failing", "next"], 0]);
});

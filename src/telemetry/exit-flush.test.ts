import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { flushAtExit } from "./exit-flush.ts";

test("a flush that is replaced while a signal is handled leaves one handler", async t => {
  const before = process.listenerCount("SIGHUP");
  let stop = flushAtExit(() => undefined);
  t.after(() => stop());
  const replace = () => {
    stop();
    stop = flushAtExit(() => undefined);
  };
  process.once("SIGHUP", replace);
  process.emit("SIGHUP", "SIGHUP");
  await nextTurn();
  assert.equal(process.listenerCount("SIGHUP"), before + 1);
});

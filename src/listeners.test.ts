import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Listeners } from "./listeners.ts";

test("whatever a listener throws is warned of once, even if it is no error", async () => {
  const listeners = new Listeners<string>();
  const heard: string[] = [];
  listeners.add(() => {
    throw 42;
  });
  listeners.add(event => {
    heard.push(event);
  });
  const warned = once(process, "warning");
  listeners.emit("first");
  listeners.emit("second");
  const [warning] = await warned;
  assert.equal(warning.message, "42");
  assert.deepEqual(heard, ["first", "second"]);
});

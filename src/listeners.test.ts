import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Listeners } from "./listeners.ts";

test("a listener that throws causes one warning, also when the value is not an error", async () => {
  const listeners = new Listeners<string>();
  const received: string[] = [];
  listeners.add(() => {
    throw 42;
  });
  listeners.add(event => {
    received.push(event);
  });
  const warned = once(process, "warning");
  listeners.emit("first");
  listeners.emit("second");
  const [warning] = await warned;
  assert.equal(warning.name, "DocstokgWarning");
  assert.equal(warning.message, "an event listener failed: 42; its further errors are not reported");
  assert.deepEqual(received, ["first", "second"]);
});

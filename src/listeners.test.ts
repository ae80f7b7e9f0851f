import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Listeners } from "./listeners.ts";

test("a listener that throws causes one warning, also when the value is not an error", async () => {
  const listeners = new Listeners<{ readonly event_type: string }>();
  const received: string[] = [];
  listeners.add(() => {
    throw 42;
  });
  listeners.add(event => {
    received.push(event.event_type);
  });
  const warned = once(process, "warning");
  listeners.emit({ event_type: "first" });
  listeners.emit({ event_type: "second" });
  const [warning] = await warned;
  assert.equal(warning.name, "DocstokgWarning");
  assert.equal(warning.message, "an event listener failed: 42; its further errors are not reported");
  assert.deepEqual(received, ["first", "second"]);
});

test("a listener gets the types that it wants, and one whose listensTo throws gets none and causes one warning", async () => {
  const listeners = new Listeners<{ readonly event_type: string }>();
  const received: string[] = [];
  const receive = ({ event_type }: { readonly event_type: string }) => void received.push(event_type);
  const listensTo = (type: string) => {
    if (type === "broken") throw new Error("token=hunter2");
    return type === "wanted";
  };
  assert.equal(listeners.hasListener("wanted"), false);
  listeners.add(Object.assign(receive, { listensTo }));
  const warned = once(process, "warning");
  assert.deepEqual(
    ["wanted", "other", "broken", "broken"].map(type => listeners.hasListener(type)),
    [true, false, false, false],
  );
  for (const event_type of ["wanted", "other", "broken"]) listeners.emit({ event_type });
  assert.deepEqual(received, ["wanted"]);
  const [warning] = await warned;
  assert.equal(warning.message, "an event listener failed: token=…; its further errors are not reported");
});

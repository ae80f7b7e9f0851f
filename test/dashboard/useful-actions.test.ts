import assert from "node:assert/strict";
import { test } from "node:test";
import { hostStates } from "../../src/dashboard/host-states.ts";
import { hostActions } from "../../web/useful-actions.ts";
import { key } from "./facts.ts";

const ALLOWED = ["open", "close", "half-open", "hold", "release", "set-limit", "reset-limit"] as const;

test("a host whose calls are counted by its service is released in its own row", () => {
  const none = { isCooling: false, windowFailures: 0, circuits: [], reason: null, remainingMs: 0 } as const;
  const hold = { target: "a.example", reason: "test", remainingMs: 60_000 };
  const hosts = hostStates(
    ["a.example", "b.example"].map(name => ({ kind: "host", name, state: "closed", ...none })),
    [{ keys: [key("service loop", { hold }), key("c.example")], ageMs: 0 }],
    0,
  );
  const released = hosts.filter(host => hostActions(host, ALLOWED, hosts).includes("release")).map(({ name }) => name);
  assert.deepEqual(released.sort(), ["a.example", "service loop"]);
  assert.ok(hosts.every(host => !hostActions(host, ["open"], hosts).includes("release")));
});

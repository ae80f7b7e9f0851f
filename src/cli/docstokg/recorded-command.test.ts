import assert from "node:assert/strict";
import { test } from "node:test";
import { recordedCommand } from "./recorded-command.ts";

test("the recorded command has only flags that can be typed", () => {
  assert.equal(recordedCommand("run", { out: "papers", telemetry: true }), "run --out papers");
  assert.equal(recordedCommand("run", { telemetry: false, allowPrivate: true }), "run --no-telemetry --allow-private");
});

test("the recorded command has no contact address and no store URL", () => {
  assert.equal(recordedCommand("run", { mailto: "a@example.org", rateDsn: "redis://me:secret@x" }), "run");
});

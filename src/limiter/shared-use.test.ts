import assert from "node:assert/strict";
import { test } from "node:test";
import { makeWindow } from "../core/limits/window-log.ts";
import { knownUse, saidUse } from "./shared-use.ts";

const SECOND_US = 1_000_000;
const HOUR_US = 3600 * SECOND_US;
const USE = { sentUs: 10 * SECOND_US, atUs: 10 * SECOND_US, used: [7, 7] };

test("after a switch to a replica, a window of more than a minute has what the store has said", () => {
  const windows = [makeWindow(20, SECOND_US), makeWindow(5000, HOUR_US)];
  const nowUs = USE.sentUs + SECOND_US / 2;
  assert.deepEqual(knownUse(windows, USE, nowUs), [20, 27]);
  assert.deepEqual(saidUse(windows, USE, nowUs), [20, 7]);
  assert.deepEqual(saidUse(windows, USE, USE.sentUs + HOUR_US), [20, 0]);
});

test("after a switch to a replica, a short window counts as full for a process that never asked", () => {
  const windows = [makeWindow(20, SECOND_US), makeWindow(5000, HOUR_US)];
  assert.deepEqual(saidUse(windows, undefined, 0), [20, 0]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { deadlineUs, wallDeadlineMs } from "./deadline.ts";

test("a deadline is written down in wall time and means the same elsewhere", () => {
  const here = { monotonicUs: 100e6, wallMs: 1_000_000 };
  const written = wallDeadlineMs(150e6, here);
  assert.equal(written, 1_050_000);
  const elsewhere = { monotonicUs: 7e6, wallMs: 1_000_000 };
  assert.equal(deadlineUs(written, elsewhere, 900_000), 57e6);
});

test("what is written down is rounded up: nobody is told to come early", () => {
  assert.equal(wallDeadlineMs(1, { monotonicUs: 0, wallMs: 5 }), 6);
});

test("a wall clock that stepped can neither lengthen a wait beyond the longest nor turn it back", () => {
  const clocks = { monotonicUs: 50, wallMs: 1_000_000 };
  assert.equal(deadlineUs(9e15, clocks, 900_000), 50 + 900_000_000);
  assert.equal(deadlineUs(0, clocks, 900_000), 50);
});

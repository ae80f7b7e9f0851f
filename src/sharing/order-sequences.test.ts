import assert from "node:assert/strict";
import { test } from "node:test";
import { runHoldSequence } from "../../test/sharing/hold-sequences.ts";
import { runLimitSequence } from "../../test/sharing/limit-sequences.ts";
import { runOrderSequence } from "../../test/sharing/order-sequences.ts";

test("in random sequences of requests, orders and outages of three processes no order is undone", async () => {
  for (let seed = 1; seed <= 300; seed += 1) assert.ok((await runOrderSequence(seed)) >= 5, "steps of the sequence");
});

test("in random sequences of holds, releases and outages of three processes no order is undone", async () => {
  for (let seed = 1; seed <= 200; seed += 1) assert.ok((await runHoldSequence(seed)) >= 5, "steps of the sequence");
});

test("in random sequences of changed limits, resets and outages of three processes no order is undone", async () => {
  for (let seed = 1; seed <= 200; seed += 1) assert.ok((await runLimitSequence(seed)) >= 5, "steps of the sequence");
});

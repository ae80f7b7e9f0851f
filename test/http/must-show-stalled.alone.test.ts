import assert from "node:assert/strict";
import { test } from "node:test";
import { fetchThreeHundred } from "./three-hundred.ts";

test("300 concurrent fetches are never rejected with the event loop stalled for 2 s in the middle either", async t => {
  const { most, ...seen } = await fetchThreeHundred(t, 2000);
  assert.deepEqual(seen, { answered: 300, arrived: 300, rejected: 0 });
  assert.ok(most <= 10, `${most} in a second`);
});

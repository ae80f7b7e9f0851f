import assert from "node:assert/strict";
import { test } from "node:test";
import { fetchThreeHundred } from "./three-hundred.ts";

// The other run is in a file of its own, so that the two run side by side.
test("300 concurrent fetches over cold connections to a server that enforces 10/s are never rejected", async t => {
  const { most, ...seen } = await fetchThreeHundred(t, 0);
  assert.deepEqual(seen, { answered: 300, arrived: 300, rejected: 0 });
  assert.ok(most <= 10, `${most} in a second`);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { evenShares } from "./even-shares.ts";

// Simulated time: the same numbers on every machine. `npm run sim -- --even-shares 1000` runs more worlds.
test("four busy processes that share one limit get about equal shares and use nearly all of it", async t => {
  const { spread, utilisation } = await evenShares(16);
  t.diagnostic(`spread ${spread.mean.toFixed(3)} ± ${spread.error.toFixed(3)}, at most ${spread.highest.toFixed(3)}`);
  t.diagnostic(`utilisation ${utilisation.mean.toFixed(3)} ± ${utilisation.error.toFixed(3)}`);
  // Three standard errors of tolerance. A spread of 0.2 is four units of a share of twenty.
  assert.ok(spread.mean + 3 * spread.error <= 0.2, JSON.stringify(spread));
  assert.ok(utilisation.mean - 3 * utilisation.error >= 0.9, JSON.stringify(utilisation));
});

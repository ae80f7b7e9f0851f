/** Changed limits of roles, and their resets, for random sequences. */
import assert from "node:assert/strict";
import { parseRates } from "../../src/core/limits/rate.ts";
import { HOST } from "./fleet.ts";
import { type RoleOrders, runRoleOrderSequence } from "./role-order-sequences.ts";

const CHANGED_LIMITS: RoleOrders = {
  /** Each order has a reason of its own. The rates are high enough for every request of the sequence. */
  draw(random, step) {
    if (random.chance(0.15)) return { kind: "close" };
    const signature = { reason: `order ${step}`, by: "test" };
    if (random.chance(0.3)) return { kind: "reset-limit", ...signature };
    const ms = random.pick([2000, 60_000, 600_000]);
    return { kind: "set-limit", ms, rates: parseRates("900/SECOND"), isForced: random.chance(0.3), ...signature };
  },
  send: (process, role) => process.send("neutral", { role }),
  async judge(process, role, request, isOver, where) {
    const key = process.gate.keySnapshots().find(each => each.key === HOST && each.role === role);
    const inForce = isOver || request.kind !== "set-limit" ? undefined : request.reason;
    assert.equal(key?.order?.reason, inForce, `${where}: the order was undone`);
    assert.equal(key?.windows[0]?.rate, inForce === undefined ? "1000/SECOND" : "900/SECOND", `${where}: the rates`);
  },
};

/** Runs one sequence. Throws an AssertionError if an order was undone. Returns the number of its steps. */
export async function runLimitSequence(seed: number): Promise<number> {
  return runRoleOrderSequence(seed, CHANGED_LIMITS);
}

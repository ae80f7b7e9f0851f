/** Holds and releases of roles, for random sequences. */
import assert from "node:assert/strict";
import { RateLimitExceeded } from "../../src/errors.ts";
import type { FleetProcess } from "./fleet.ts";
import { type RoleOrders, runRoleOrderSequence, type UsedRole } from "./role-order-sequences.ts";

const HOLDS: RoleOrders = {
  draw(random) {
    const kind = random.pick(["hold", "hold", "release", "close"] as const);
    return kind === "hold" ? { kind, ms: random.pick([2000, 60_000, 600_000]), reason: "cli-open:test" } : { kind };
  },
  send: isHeld,
  async judge(process, role, { kind }, isOver, where) {
    if (!isOver) assert.equal(await isHeld(process, role), kind === "hold", `${where}: the order was undone`);
  },
};

/** Runs one sequence. Throws an AssertionError if an order was undone. Returns the number of its steps. */
export async function runHoldSequence(seed: number): Promise<number> {
  return runRoleOrderSequence(seed, HOLDS);
}

async function isHeld(process: FleetProcess, role: UsedRole): Promise<boolean> {
  try {
    await process.send("neutral", { role });
    return false;
  } catch (error) {
    if (error instanceof RateLimitExceeded) return true;
    throw error;
  }
}

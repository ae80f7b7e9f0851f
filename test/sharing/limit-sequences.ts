/**
 * Random sequences of changed limits, resets, requests and outages on three processes that share a store. The oracle is
 * one sentence: the order that was given last for a role is in force in every process that can reach the store.
 */
import assert from "node:assert/strict";
import { Random } from "../../sim/random.ts";
import type { BreakerTarget } from "../../src/breaker/orders.ts";
import { parseRates } from "../../src/core/limits/rate.ts";
import { breakersOf } from "../../src/gate/registry-breakers.ts";
import type { RateRequest } from "../../src/http/limit-command.ts";
import { type FleetProcess, fleetOf, HOST, REREAD_MS } from "./fleet.ts";

const ROLES_USED = ["metadata", "landing"] as const;
type UsedRole = (typeof ROLES_USED)[number];
const TARGETS: readonly BreakerTarget[] = [{ unit: HOST }, ...ROLES_USED.map(role => ({ unit: HOST, role }))];

/** Runs one sequence. Throws an AssertionError if an order was undone. Returns the number of its steps. */
export async function runLimitSequence(seed: number): Promise<number> {
  const random = new Random(seed);
  const { time, processes, operator, shared } = fleetOf(3);
  const last = new Map<UsedRole, { readonly request: RateRequest; readonly givenMs: number }>();
  const nowMs = () => time.monotonicUs() / 1000;
  const readAll = async (readers: readonly FleetProcess[]) => {
    await time.advance(REREAD_MS);
    for (const process of readers) for (const role of ROLES_USED) await process.send("neutral", { role });
  };
  const order = async (process: FleetProcess, step: number) => {
    const target = random.pick(TARGETS);
    const request = requestOf(random, step);
    if (random.chance(0.5)) await operator.order(target, request);
    else breakersOf(process.breakers).giveOrder(target, request);
    const roles = ROLES_USED.filter(role => "unit" in target && (target.role ?? role) === role);
    for (const role of roles) last.set(role, { request, givenMs: nowMs() });
  };
  /** The store loses its data. What no process has read before is lost. */
  const loseData = async () => {
    const connected = processes.filter(({ isAway }) => !isAway);
    if (connected.length === 0) return;
    await readAll(connected);
    shared.records.clear();
  };
  const steps = random.whole(5, 25);
  for (let step = 0; step < steps; step += 1) {
    const process = random.pick(processes);
    const kind = random.next();
    if (kind < 0.3) await process.send("neutral", { role: random.pick(ROLES_USED) });
    else if (kind < 0.55) await order(process, step);
    else if (kind < 0.6) await operator.order({ unit: HOST }, { kind: "close" });
    else if (kind < 0.75) process.isAway = !process.isAway;
    else if (kind < 0.78) await loseData();
    else await time.advance(random.pick([1, 30, 600, 5000, 70_000]));
    await time.advance(1);
  }
  for (const process of processes) process.isAway = false;
  for (let round = 0; round < 3; round += 1) await readAll(processes);
  for (const [role, { request, givenMs }] of last) {
    const isOver = request.kind === "reset-limit" || givenMs + request.ms <= nowMs();
    for (const [index, process] of processes.entries()) {
      const key = process.gate.keySnapshots().find(each => each.key === HOST && each.role === role);
      const inForce = key?.order?.reason;
      assert.equal(
        inForce,
        isOver ? undefined : request.reason,
        `seed ${seed}, process ${index}, ${role}: the order to ${request.kind} was undone`,
      );
      assert.equal(key?.windows[0]?.rate, isOver ? "1000/SECOND" : "900/SECOND", `seed ${seed}: the rates in force`);
    }
  }
  return steps;
}

/** Each order has a reason of its own. The rates are high enough for every request of the sequence. */
function requestOf(random: Random, step: number): RateRequest {
  const signature = { reason: `order ${step}`, by: "test" };
  if (random.chance(0.3)) return { kind: "reset-limit", ...signature };
  const rates = parseRates("900/SECOND");
  return {
    kind: "set-limit",
    ms: random.pick([2000, 60_000, 600_000]),
    rates,
    isForced: random.chance(0.3),
    ...signature,
  };
}

/**
 * Random sequences of one kind of orders for roles, requests and outages on three processes that share a store. The
 * oracle is one sentence: the order that was given last for a role is in force in every process that can reach the store.
 */
import { Random } from "../../sim/random.ts";
import type { BreakerTarget, LimitRequest, OrderRequest } from "../../src/breaker/orders.ts";
import { breakersOf } from "../../src/gate/registry-breakers.ts";
import { type FleetProcess, fleetOf, HOST, REREAD_MS } from "./fleet.ts";

const ROLES_USED = ["metadata", "landing"] as const;
export type UsedRole = (typeof ROLES_USED)[number];
const TARGETS: readonly BreakerTarget[] = [{ unit: HOST }, ...ROLES_USED.map(role => ({ unit: HOST, role }))];

/** One kind of orders: how they are drawn, how a process reads them, and what shows that they are in force. */
export interface RoleOrders {
  /** An order of the kind, or one for circuits, which must change nothing. */
  draw(random: Random, step: number): LimitRequest | (OrderRequest & { readonly kind: "close" });
  /** Sends a request that does not wait, so that the process reads the records of the store. */
  send(process: FleetProcess, role: UsedRole): Promise<unknown>;
  /** Throws an AssertionError if the process does not keep to the last order; `isOver` if its time has passed. */
  judge(process: FleetProcess, role: UsedRole, last: LimitRequest, isOver: boolean, where: string): Promise<void>;
}

/** Runs one sequence. Throws an AssertionError if an order was undone. Returns the number of its steps. */
export async function runRoleOrderSequence(seed: number, orders: RoleOrders): Promise<number> {
  const random = new Random(seed);
  const { time, processes, operator, shared } = fleetOf(3);
  const last = new Map<UsedRole, { readonly request: LimitRequest; readonly givenMs: number }>();
  const nowMs = () => time.monotonicUs() / 1000;
  const readAll = async (readers: readonly FleetProcess[]) => {
    await time.advance(REREAD_MS);
    for (const process of readers) for (const role of ROLES_USED) await orders.send(process, role);
  };
  const order = async (process: FleetProcess, step: number) => {
    const target = random.pick(TARGETS);
    const request = orders.draw(random, step);
    if (random.chance(0.5)) await operator.order(target, request);
    else breakersOf(process.breakers).giveOrder(target, request);
    if (request.kind === "close") return;
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
    if (kind < 0.3) await orders.send(process, random.pick(ROLES_USED));
    else if (kind < 0.55) await order(process, step);
    else if (kind < 0.75) process.isAway = !process.isAway;
    else if (kind < 0.78) await loseData();
    else await time.advance(random.pick([1, 30, 600, 5000, 70_000]));
    await time.advance(1);
  }
  for (const process of processes) process.isAway = false;
  for (let round = 0; round < 3; round += 1) await readAll(processes);
  for (const [role, { request, givenMs }] of last) {
    const isOver = "ms" in request && givenMs + request.ms <= nowMs();
    for (const [index, process] of processes.entries())
      await orders.judge(process, role, request, isOver, `seed ${seed}, process ${index}, ${role}, ${request.kind}`);
  }
  return steps;
}

/**
 * Random sequences of requests, orders and outages on three processes that share a store. The oracle is two sentences: the
 * order that was given last is in force in every process that can reach the store, and so is a Retry-After that one of
 * them has received since.
 */
import assert from "node:assert/strict";
import { Random } from "../../sim/random.ts";
import type { BreakerTarget, OrderRequest } from "../../src/breaker/orders.ts";
import { breakersOf } from "../../src/gate/registry-breakers.ts";
import { type FleetProcess, fleetOf, HOST, REREAD_MS } from "./fleet.ts";

const PROCESSES = 3;
const HOST_TARGET: BreakerTarget = { unit: HOST };
const TARGETS: readonly BreakerTarget[] = [HOST_TARGET, { unit: HOST, role: "landing" }, { resolver: "index" }];

/** The last order for a target, and what has happened since. */
interface LastOrder {
  readonly request: OrderRequest;
  readonly givenMs: number;
  /** A call of this target has failed since the order, so that its circuit may be open again. */
  hasFailed: boolean;
}

/** Runs one sequence. Throws an AssertionError if an order was undone. Returns the number of its steps. */
export async function runOrderSequence(seed: number): Promise<number> {
  const random = new Random(seed);
  const { time, processes, operator, shared } = fleetOf(PROCESSES);
  const last = new Map<BreakerTarget, LastOrder>();
  /** When the last Retry-After of the host ends; 0 if an order has ended it, or the store may have lost it. */
  let retryAfterEndMs = 0;
  const nowMs = () => time.monotonicUs() / 1000;
  const ordered = (target: BreakerTarget, request: OrderRequest) =>
    last.set(target, { request, givenMs: nowMs(), hasFailed: false });

  const send = async (process: FleetProcess) => {
    const target = random.pick(TARGETS);
    const failed = random.chance(0.6);
    const result = failed
      ? random.chance(0.2)
        ? { retryAfterMs: random.whole(1, 400) * 1000 }
        : "failure"
      : "success";
    const refused = await process.send(result, callOf(target));
    if (typeof result === "object" && refused === undefined && "unit" in target)
      retryAfterEndMs = Math.max(retryAfterEndMs, nowMs() + result.retryAfterMs);
    // The resolver's calls go to another host. A cooldown of the host applies to all its roles.
    if (failed && refused === undefined)
      for (const [other, order] of last) if ("resolver" in other === "resolver" in target) order.hasFailed = true;
  };
  const order = async (process: FleetProcess) => {
    const target = random.pick(TARGETS);
    const request = requestOf(random);
    if (random.chance(0.5)) await operator.order(target, request);
    else breakersOf(process.breakers).giveOrder(target, request);
    ordered(target, request);
    if (target !== HOST_TARGET || request.kind === "open") return;
    retryAfterEndMs = 0;
    // An order for the host is one for its roles too.
    for (const other of TARGETS) if ("unit" in other && other.role !== undefined) ordered(other, request);
  };

  /** The store loses its data. What no process has read before is lost. */
  const loseData = async () => {
    const connected = processes.filter(({ isAway }) => !isAway);
    if (connected.length === 0) return;
    await time.advance(REREAD_MS);
    await readAll(connected);
    shared.records.clear();
    retryAfterEndMs = 0;
  };

  const steps = random.whole(5, 25);
  for (let step = 0; step < steps; step += 1) {
    const process = random.pick(processes);
    const kind = random.next();
    if (kind < 0.45) await send(process);
    else if (kind < 0.6) await order(process);
    else if (kind < 0.75) process.isAway = !process.isAway;
    else if (kind < 0.77) await loseData();
    else await time.advance(random.pick([1, 30, 600, 5000, 70_000]));
    await time.advance(1);
  }
  await settle(processes, time);
  for (const [index, process] of processes.entries()) {
    if (nowMs() >= retryAfterEndMs) continue;
    const refused = await process.send("neutral", callOf(HOST_TARGET));
    assert.notEqual(refused, undefined, `seed ${seed}, process ${index}: the Retry-After was lost`);
  }
  for (const [target, lastOrder] of last) {
    const isRole = "unit" in target && target.role !== undefined;
    const hostOrder = isRole ? last.get(HOST_TARGET) : undefined;
    for (const [index, process] of processes.entries()) {
      const refused = await process.send("neutral", callOf(target));
      const where = `seed ${seed}, process ${index}, ${JSON.stringify(target)}`;
      // A cooldown of the host, or an order to open it, refuses the role too.
      if (!isRole || (refused !== "retry-after" && hostOrder?.request.kind !== "open"))
        judge(where, refused, lastOrder, nowMs());
      await time.advance(1);
    }
  }
  return steps;
}

/** All processes reach the store again, and have read it. */
async function settle(processes: readonly FleetProcess[], time: { advance(ms: number): Promise<void> }): Promise<void> {
  for (const process of processes) process.isAway = false;
  for (let round = 0; round < 3; round += 1) {
    await time.advance(REREAD_MS);
    await readAll(processes);
  }
  await time.advance(REREAD_MS);
}

/** Each process reads all records, because it sends a request for each. */
async function readAll(processes: readonly FleetProcess[]): Promise<void> {
  for (const process of processes) for (const target of TARGETS) await process.send("neutral", callOf(target));
}

function judge(
  where: string,
  refused: string | undefined,
  { request, givenMs, hasFailed }: LastOrder,
  nowMs: number,
): void {
  if (request.kind !== "open") {
    if (!hasFailed) assert.equal(refused, undefined, `${where}: the order to close was undone`);
  } else if (givenMs + request.ms > nowMs) {
    assert.notEqual(refused, undefined, `${where}: the order to open was undone`);
  }
}

function requestOf(random: Random): OrderRequest {
  const kind = random.pick(["open", "close", "close", "half-open"] as const);
  if (kind !== "open") return { kind };
  const ms = random.pick([2000, 60_000, 600_000]);
  return { kind, ms, reason: "cli-open:test", isReplacing: random.chance(0.3) };
}

let resolverCalls = 0;

function callOf(target: BreakerTarget) {
  // Each call of the resolver goes to another host, so that only the circuit of the resolver can refuse it.
  if ("resolver" in target) {
    resolverCalls += 1;
    return { host: `host-${resolverCalls}.example`, resolver: target.resolver };
  }
  return { host: target.unit, role: target.role ?? ("metadata" as const) };
}

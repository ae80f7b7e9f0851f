import type { CallPlan, Fault, Plan, ProcessPlan } from "./plan.ts";
import { simulate } from "./simulate.ts";

/** Maximum number of simulations. The result must be small enough to read, not minimal. */
const TRIES_MAX = 600;

/** A smaller plan that violates the same law, with fewer and simpler faults, calls, processes and hosts. */
export async function shrink(plan: Plan, law: string): Promise<Plan> {
  let best = plan;
  let tries = 0;
  const isBroken = async (candidate: Plan) => {
    tries += 1;
    if (tries > TRIES_MAX) return false;
    const { violations } = await simulate(candidate);
    return violations.some(violation => violation.law === law);
  };
  for (let isBetter = true; isBetter && tries <= TRIES_MAX; ) {
    isBetter = false;
    for (const candidate of smaller(best)) {
      if (!(await isBroken(candidate))) continue;
      best = candidate;
      isBetter = true;
      break;
    }
  }
  return best;
}

/** Plans that are one step smaller, largest steps first. */
function* smaller(plan: Plan): Generator<Plan> {
  for (const faults of withoutSome(plan.faults)) yield { ...plan, faults };
  for (const calls of withoutSome(plan.calls)) yield { ...plan, calls };
  if (plan.processes.length > 1) yield withoutLastProcess(plan);
  for (const { name } of plan.hosts) {
    const isUsed = plan.calls.some(({ host }) => host === name) || plan.faults.some(fault => hostOf(fault) === name);
    if (!isUsed && plan.hosts.length > 1) yield { ...plan, hosts: plan.hosts.filter(host => host.name !== name) };
  }
  for (const [index, call] of plan.calls.entries()) {
    for (const simpler of simplerCalls(call)) yield { ...plan, calls: plan.calls.with(index, simpler) };
  }
  for (const [index, process] of plan.processes.entries()) {
    const simpler: ProcessPlan = { originUs: 0, wallOffsetMs: 0, earlyUs: 0, computeUs: 0 };
    if (JSON.stringify(process) !== JSON.stringify(simpler))
      yield { ...plan, processes: plan.processes.with(index, simpler) };
  }
  if (plan.network.jitterMs > 0) yield { ...plan, network: { ...plan.network, jitterMs: 0 } };
  if (plan.network.coldMs > 0) yield { ...plan, network: { ...plan.network, coldMs: 0 } };
}

/** The list without each half, then without each quarter, and so on down to single items. */
function* withoutSome<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (let size = Math.ceil(items.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < items.length; from += size) yield [...items.slice(0, from), ...items.slice(from + size)];
  }
}

function* simplerCalls(call: CallPlan): Generator<CallPlan> {
  if (call.abortMs !== undefined) yield { ...call, abortMs: undefined };
  if (call.deadlineMs !== undefined) yield { ...call, deadlineMs: undefined };
  if (call.weight !== 1) yield { ...call, weight: 1 };
  if (!call.isRead) yield { ...call, isRead: true };
  if (call.method !== "GET") yield { ...call, method: "GET" };
}

function withoutLastProcess(plan: Plan): Plan {
  const last = plan.processes.length - 1;
  return {
    ...plan,
    processes: plan.processes.slice(0, last),
    calls: plan.calls.filter(({ process }) => process !== last),
    faults: plan.faults.filter(fault => !("process" in fault) || fault.process !== last),
  };
}

function hostOf(fault: Fault): string | undefined {
  return "host" in fault ? fault.host : undefined;
}

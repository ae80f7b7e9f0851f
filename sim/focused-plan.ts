/**
 * Worlds in which laws apply that rarely apply in others: full windows where nothing else delays a call, keys that are
 * evicted, reloads while windows are full, and a store that is away while calls arrive.
 */
import type { Role } from "../src/policy/roles.ts";
import type { CallPlan, Fault, HostPlan, Plan, RatePlan } from "./plan.ts";
import type { Random } from "./random.ts";

/** The instants at which calls arrive together in a focused world. */
const BURSTS = 3;
/** A burst has this many calls more than the smallest limit of its role allows. */
const BURST_EXCESS = 4;

type Focus = (random: Random, plan: Plan) => Plan;

const FOCUSES: readonly Focus[] = [calm, evicting, reloading, withoutStore];

/** The plan with one focus. What it does not need stays as it was drawn. */
export function focused(random: Random, plan: Plan): Plan {
  return random.pick(FOCUSES)(random, plan);
}

/** One process and one host, where nothing but the rates delays a call: the exact time of each call is known. */
function calm(random: Random, plan: Plan): Plan {
  const host = plainHost(random, plan.hosts[0] as HostPlan);
  return {
    ...plan,
    ...{ hosts: [host], processes: plan.processes.slice(0, 1).map(one => ({ ...one, computeUs: 0, earlyUs: 0 })) },
    ...{ store: undefined, isAimd: false, maxInFlight: 500, faults: [], startsWithTotals: true },
    network: { ...plan.network, coldMs: 0 },
    calls: bursts(random, [host], 1, burstTimes(random, [host])),
  };
}

/** Many hosts with few calls each, in a process that evicts every key that behaves like a new one. */
function evicting(random: Random, plan: Plan): Plan {
  const hosts = Array.from({ length: 8 }, (_, index) => {
    const drawn = plan.hosts[index % plan.hosts.length] as HostPlan;
    return { ...drawn, name: `host-${index}.test`, isPerPartition: undefined, hasPartitionBreakers: undefined };
  });
  const spanMs = 4 * Math.max(...hosts.flatMap(host => ratesOf(host).map(({ windowMs }) => windowMs)));
  const calls = Array.from({ length: 32 }, (_, id) =>
    busyCall(random, { id, atMs: random.whole(0, spanMs), process: random.whole(0, plan.processes.length - 1) }, hosts),
  );
  return {
    ...plan,
    hosts,
    calls: inOrder(calls),
    keptKeys: 0,
    faults: plan.faults.filter(fault => !("host" in fault)),
  };
}

/** Reloads that change rates and totals while the windows are full and calls wait. */
function reloading(random: Random, plan: Plan): Plan {
  const hosts = plan.hosts.map(host => ({
    ...host,
    total: host.total.length > 0 || host.isSmooth ? host.total : [{ limit: random.whole(2, 12), windowMs: 1000 }],
  }));
  const times = burstTimes(random, hosts);
  const shortestMs = Math.min(...hosts.flatMap(host => ratesOf(host).map(({ windowMs }) => windowMs)));
  const faults = times.map(
    (atMs): Fault => ({
      kind: "reload",
      // Before the window of the burst has passed.
      atMs: atMs + random.whole(1, shortestMs),
      factor: random.pick([0.5, 1, 1, 2]),
      hasTotals: random.chance(0.7),
      ...(random.chance(0.5) && { isPartitioned: false as const }),
    }),
  );
  return {
    ...plan,
    ...{ hosts, faults, startsWithTotals: random.chance(0.5) },
    calls: bursts(random, hosts, plan.processes.length, times),
  };
}

/** The store of several processes is away while calls arrive. */
function withoutStore(random: Random, plan: Plan): Plan {
  const [process] = plan.processes;
  const processes = plan.processes.length > 1 || process === undefined ? plan.processes : [process, process];
  const times = burstTimes(random, plan.hosts);
  const faults = times.map(
    (atMs): Fault => ({
      kind: "store-away",
      atMs: Math.max(0, atMs - random.pick([0, 50, 1500])),
      ms: random.pick([500, 3000, 20_000]),
      isSilent: random.chance(0.5),
    }),
  );
  return {
    ...plan,
    processes,
    store: {
      delayMs: 1,
      jitterMs: 2,
      ...plan.store,
      whenAway: random.pick(["share", "share", "wait", "refuse"] as const),
    },
    hosts: plan.hosts.map(host => ({ ...host, server: { ...host.server, enforcesConcurrency: false } })),
    faults: apart(faults),
    calls: bursts(random, plan.hosts, processes.length, times),
  };
}

/** In half of the worlds two roles share a total that is used up before their own limits. */
function plainHost(random: Random, host: HostPlan): HostPlan {
  const drawn = Object.entries(host.roleLimits).map(
    ([role, limits]) => [role, { ...limits, maxConcurrent: 100 }] as const,
  );
  const roles = random.chance(0.5) ? drawn : [...drawn, ["artifact", drawn[0]?.[1]] as const];
  const [first] = ratesOf(host);
  const total = first && { limit: first.limit + 1, windowMs: 2 * first.windowMs };
  return {
    ...host,
    ...{ credits: undefined, isSmooth: false, isPerPartition: undefined, hasPartitionBreakers: undefined },
    roleLimits: Object.fromEntries(roles),
    total: roles.length > 1 && total !== undefined ? [total] : host.total,
    server: { ...host.server, model: "sliding-log", enforcedShare: 1, announces: "nothing" },
  };
}

function burstTimes(random: Random, hosts: readonly HostPlan[]): readonly number[] {
  const longestMs = Math.max(...hosts.flatMap(host => ratesOf(host).map(({ windowMs }) => windowMs)));
  const times = Array.from({ length: BURSTS }, () => random.whole(0, 3 * longestMs));
  return times.sort((a, b) => a - b);
}

/** More calls than the limit of a role allows, at each of these times. */
function bursts(random: Random, hosts: readonly HostPlan[], processes: number, times: readonly number[]): CallPlan[] {
  const calls: CallPlan[] = [];
  for (const atMs of times) {
    const host = random.pick(hosts);
    const limits = ratesOf(host).map(({ limit }) => limit);
    const count = Math.min(...limits) + random.whole(1, BURST_EXCESS);
    for (let call = 0; call < count; call += 1) {
      const process = random.whole(0, processes - 1);
      calls.push(busyCall(random, { id: calls.length, atMs: atMs + random.pick([0, 0, 0, 1, 30]), process }, [host]));
    }
  }
  return inOrder(calls);
}

/** A call that uses a unit and is answered: no HEAD, no page that another call asks for, no abort. */
function busyCall(random: Random, at: Pick<CallPlan, "id" | "atMs" | "process">, hosts: readonly HostPlan[]): CallPlan {
  const host = random.pick(hosts);
  const roles = Object.keys(host.roleLimits) as Role[];
  return {
    ...at,
    ...{ host: host.name, role: random.pick([roles[0] as Role, ...roles]), method: "GET", page: at.id, weight: 1 },
    ...{ credits: undefined, usedCredits: 0, bodyMs: 0, deadlineMs: undefined, abortMs: undefined, isRead: true },
    ...(host.isPerPartition && { partition: random.pick(["a", "a", "b"]) }),
    maxWaitMs: random.pick([undefined, 0, 100, 500, 3000, 60_000]),
  };
}

/** Only one outage of the store at a time: the end of one would end the other. */
function apart(faults: readonly Fault[]): readonly Fault[] {
  let untilMs = Number.NEGATIVE_INFINITY;
  return faults
    .toSorted((a, b) => a.atMs - b.atMs)
    .filter(fault => {
      if (fault.atMs <= untilMs) return false;
      untilMs = fault.atMs + ("ms" in fault ? fault.ms : 0);
      return true;
    });
}

function inOrder(calls: readonly CallPlan[]): CallPlan[] {
  return calls.toSorted((a, b) => a.atMs - b.atMs || a.id - b.id);
}

function ratesOf({ roleLimits }: HostPlan): readonly RatePlan[] {
  return Object.values(roleLimits).flatMap(({ rates }) => rates);
}

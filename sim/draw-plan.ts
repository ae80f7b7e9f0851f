import type { Role } from "../src/policy/roles.ts";
import { drawFaults } from "./draw-faults.ts";
import { focused } from "./focused-plan.ts";
import type {
  BreakerPlan,
  CallPlan,
  CreditsPlan,
  HostPlan,
  NetworkPlan,
  Plan,
  ProcessPlan,
  RatePlan,
  RoleLimitsPlan,
  StorePlan,
} from "./plan.ts";
import { Random } from "./random.ts";

const ALL_ROLES: readonly Role[] = ["metadata", "landing", "artifact"];
/** Part of the guard that is reserved for timers that fire 1 ms early; jitter may use the rest. */
const GUARD_SPARE_MS = 2;

/** A reload may halve every limit, and three processes without a store divide it: a call must still be possible. */
const MAX_CALL_CREDITS = 6;
const MIN_CREDITS = 36;

/** Generates the plan of a seed. Each fourth world has one focus. */
export function drawPlan(seed: number): Plan {
  const plan = drawMixed(seed);
  return seed % 4 === 3 ? focused(new Random(seed, 5), plan) : plan;
}

function drawMixed(seed: number): Plan {
  const random = new Random(seed);
  const costs = new Random(seed, 1);
  const processCount = random.pick([1, 1, 1, 2, 2, 3]);
  const store =
    processCount > 1 || random.chance(0.1)
      ? {
          delayMs: random.pick([0, 1, 5, 50]),
          jitterMs: random.pick([0, 2, 20, 200]),
          whenAway: costs.pick(["share", "share", "wait"] as const),
        }
      : undefined;
  // Without a store each process uses the full limits, so no law could hold at the server.
  const count = store === undefined ? 1 : processCount;
  const guardMs = random.pick([5, 25, 25, 100]);
  const spanMs = random.pick([3000, 10_000, 30_000, 90_000]);
  const hosts = Array.from({ length: random.pick([1, 1, 2, 3]) }, (_, index) => ({
    ...drawHost(random, index, guardMs, count),
    credits: costs.chance(0.3) ? drawCredits(costs) : undefined,
  }));
  const processes = Array.from({ length: count }, () => drawProcess(random));
  const calls = drawCalls(random, hosts, count, spanMs).map(call => withCosts(costs, call));
  const drawn = {
    network: drawNetwork(random, guardMs),
    breakers: withSlowCalls(new Random(seed, 2), drawBreakers(random)),
    retryAttempts: random.pick([1, 2, 4, 4]),
    unreadBodyMs: random.pick([500, 3000]),
    maxInFlight: random.pick([1, 3, 500, 500]),
    isAimd: random.chance(0.3),
    faults: drawFaults(random, { hosts, processes: count, hasStore: store !== undefined, spanMs }),
  };
  const partitions = new Random(seed, 3);
  const breakers = new Random(seed, 4);
  const partitioned = hosts.map(host =>
    partitions.chance(0.15)
      ? { ...host, isPerPartition: true as const, ...(breakers.chance(0.5) && { hasPartitionBreakers: true as const }) }
      : host,
  );
  // Servers enforce their totals from the beginning.
  const startsWithTotals = drawn.faults.every(({ kind }) => kind !== "reload") || costs.chance(0.5);
  const plan: Plan = {
    ...{ seed, hosts: partitioned, processes, store: store && refusing(partitions, store), startsWithTotals },
    ...{ calls: calls.map(call => inPartition(partitions, call, partitioned)), ...drawn },
  };
  return withJoinedPartitions(breakers, plan);
}

/** Two of three reloads join the limits of all partitions. */
function withJoinedPartitions(random: Random, plan: Plan): Plan {
  if (plan.hosts.every(({ isPerPartition }) => !isPerPartition) || random.chance(0.3)) return plan;
  const joined = { isPartitioned: false } as const;
  return { ...plan, faults: plan.faults.map(fault => (fault.kind === "reload" ? { ...fault, ...joined } : fault)) };
}

/** With some stores that are away, calls are refused. */
function refusing(random: Random, store: StorePlan): StorePlan {
  return random.chance(0.15) ? { ...store, whenAway: "refuse" } : store;
}

/** Calls to hosts with `per: partition` name one of two partitions, or none. */
function inPartition(random: Random, call: CallPlan, hosts: readonly HostPlan[]): CallPlan {
  if (!hosts.find(({ name }) => name === call.host)?.isPerPartition) return call;
  return { ...call, partition: random.pick([undefined, "a", "a", "b"]) };
}

function drawNetwork(random: Random, guardMs: number): NetworkPlan {
  return {
    delayMs: random.pick([0, 1, 20, 80]),
    jitterMs: random.pick([0, 1, guardMs - GUARD_SPARE_MS]),
    connectMs: random.pick([0, 1, 30, 120]),
    coldMs: random.pick([0, 5, 90]),
    keepAliveMs: random.pick([50, 4000, 60_000]),
    headersTimeoutMs: random.pick([1000, 8000]),
  };
}

function drawHost(random: Random, index: number, guardMs: number, processes: number): Omit<HostPlan, "credits"> {
  const model = random.pick(["fixed-window", "sliding-log", "sliding-log", "tokens", "gcra", "two-buckets"] as const);
  const isSmooth = model === "two-buckets" || random.chance(0.05);
  const roles = ALL_ROLES.filter((_, role) => role === 0 || random.chance(0.35));
  const roleLimits: Partial<Record<Role, RoleLimitsPlan>> = {};
  for (const role of roles) roleLimits[role] = drawRoleLimits(random, isSmooth);
  return {
    name: `host-${index}.test`,
    roleLimits,
    total:
      !isSmooth && random.chance(0.25)
        ? [{ limit: random.whole(2, 12), windowMs: random.pick([500, 1000, 3000]) }]
        : [],
    guardMs,
    isSmooth,
    server: {
      model,
      enforcedShare: random.chance(0.1) ? 0.5 : 1,
      enforcesConcurrency: processes === 1,
      serviceMs: random.pick([0, 10, 200, 1500]),
      announces: random.pick(["nothing", "nothing", "nothing", "ietf", "x-ratelimit", "crossref"]),
      maxAgeS: random.pick([0, 0, 0, 5, 60]),
      wallOffsetMs: random.pick([0, 0, 0, -90_000, 3_600_000]),
    },
  };
}

function drawRoleLimits(random: Random, isSmooth: boolean): RoleLimitsPlan {
  const first: RatePlan = isSmooth
    ? { limit: random.whole(3, 8), windowMs: random.pick([5000, 10_000]) }
    : { limit: random.whole(1, 10), windowMs: random.pick([200, 1000, 1000, 3000]) };
  const second = { limit: first.limit + random.whole(1, 10), windowMs: first.windowMs * random.pick([4, 10]) };
  return {
    rates: !isSmooth && random.chance(0.3) ? [first, second] : [first],
    maxDelayMs: random.pick([0, 200, 2000, 20_000]),
    maxConcurrent: random.pick([1, 2, 5, 100]),
    countsHead: random.chance(0.5),
  };
}

function drawBreakers(random: Random): BreakerPlan {
  return {
    failMax: random.pick([1, 2, 3, 5]),
    resetS: random.pick([0.5, 2, 10]),
    trialCalls: random.pick([1, 1, 2]),
    jitterMs: random.pick([0, 150]),
    retryAfterCapS: random.pick([5, 20]),
    isAdaptive: random.chance(0.5),
    rolling: random.chance(0.4)
      ? { threshold: random.whole(2, 6), windowS: random.pick([2, 30]), cooldownS: random.pick([1, 5]) }
      : undefined,
  };
}

/** Slow calls are counted in the rolling window only. */
function withSlowCalls(random: Random, breakers: BreakerPlan): BreakerPlan {
  if (breakers.rolling === undefined || !random.chance(0.5)) return breakers;
  const slowCalls = { ms: random.pick([30, 200, 700]), share: random.pick([0.25, 0.5]), minCalls: random.whole(2, 5) };
  return { ...breakers, slowCalls };
}

function drawProcess(random: Random): ProcessPlan {
  return {
    originUs: random.pick([0, 1, 987_654_321_000]),
    wallOffsetMs: random.pick([0, 0, 0, -5000, 700_000]),
    earlyUs: random.pick([0, 0, 500, 1000]),
    computeUs: random.pick([0, 0, 0, 20, 300]),
  };
}

function drawCredits(random: Random): CreditsPlan {
  const rate = (): RatePlan => ({ limit: random.whole(MIN_CREDITS, 60), windowMs: random.pick([1000, 4000, 20_000]) });
  return {
    rates: random.chance(0.7) ? [rate()] : [],
    total: random.chance(0.5) ? [rate()] : [],
    usual: random.whole(0, MAX_CALL_CREDITS),
    isSettled: random.chance(0.7),
  };
}

/** A quarter of all calls names its credits. Some use much more than they expect, some less, some nothing. */
function withCosts(random: Random, call: DrawnCall): CallPlan {
  return {
    ...call,
    credits: random.chance(0.25) ? random.whole(0, MAX_CALL_CREDITS) : undefined,
    usedCredits: random.pick([0, 1, 3, MAX_CALL_CREDITS, 20, 50]),
    bodyMs: call.method === "POST" ? random.pick([0, 20, 300, 2500]) : 0,
  };
}

type DrawnCall = Omit<CallPlan, "credits" | "usedCredits" | "bodyMs">;

/** Calls in a burst, spread over the time, or both. */
function drawCalls(
  random: Random,
  hosts: readonly HostPlan[],
  processes: number,
  spanMs: number,
): readonly DrawnCall[] {
  const count = random.pick([4, 10, 18, 32]);
  const burstAtMs = random.whole(0, spanMs);
  const isBursty = random.chance(0.5);
  const pages = random.pick([1, 5, 1000]);
  const calls: DrawnCall[] = [];
  for (let id = 0; id < count; id += 1) {
    const { name, roleLimits, isSmooth } = random.pick(hosts);
    const roles = Object.keys(roleLimits) as Role[];
    const role = random.pick(roles);
    const least = Math.min(...(roleLimits[role]?.rates ?? []).map(({ limit }) => limit));
    const method = random.pick(["GET", "GET", "GET", "GET", "GET", "HEAD", "POST"] as const);
    calls.push({
      id,
      atMs: isBursty && random.chance(0.7) ? burstAtMs : random.whole(0, spanMs),
      process: random.whole(0, processes - 1),
      host: name,
      role,
      method,
      page: random.whole(1, pages),
      // With even spacing only one unit is free at a time.
      weight: !isSmooth && random.chance(0.1) ? random.whole(1, Math.min(3, least)) : 1,
      maxWaitMs: random.pick([undefined, undefined, 0, 100, 3000, 60_000, Number.POSITIVE_INFINITY]),
      deadlineMs: random.chance(0.15) ? random.pick([50, 1000, 10_000]) : undefined,
      abortMs: random.chance(0.1) ? random.pick([0, 1, 20, 150, 2000]) : undefined,
      isRead: !random.chance(0.05),
    });
  }
  return calls.sort((a, b) => a.atMs - b.atMs || a.id - b.id);
}

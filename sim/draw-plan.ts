import type { Role } from "../src/policy/roles.ts";
import { drawFaults } from "./draw-faults.ts";
import type { BreakerPlan, CallPlan, HostPlan, LanePlan, NetworkPlan, Plan, ProcessPlan, RatePlan } from "./plan.ts";
import { Luck } from "./random.ts";

const ALL_ROLES: readonly Role[] = ["metadata", "landing", "artifact"];
/** A timer that is a millisecond early takes as much from the guard as the network may. */
const GUARD_SPARE_MS = 2;

/** The scenario that a seed stands for. */
export function drawPlan(seed: number): Plan {
  const luck = new Luck(seed);
  const processCount = luck.pick([1, 1, 1, 2, 2, 3]);
  const store =
    processCount > 1 || luck.chance(0.1)
      ? { delayMs: luck.pick([0, 1, 5, 50]), jitterMs: luck.pick([0, 2, 20, 200]) }
      : undefined;
  // Without a store each process has its limits to itself, and no server could be promised anything.
  const count = store === undefined ? 1 : processCount;
  const guardMs = luck.pick([5, 25, 25, 100]);
  const spanMs = luck.pick([3000, 10_000, 30_000, 90_000]);
  const hosts = Array.from({ length: luck.pick([1, 1, 2, 3]) }, (_, index) => drawHost(luck, index, guardMs, count));
  const processes = Array.from({ length: count }, () => drawProcess(luck));
  const calls = drawCalls(luck, hosts, count, spanMs);
  return {
    seed,
    network: drawNetwork(luck, guardMs),
    hosts,
    breakers: drawBreakers(luck),
    processes,
    store,
    retryAttempts: luck.pick([1, 2, 4, 4]),
    unreadBodyMs: luck.pick([500, 3000]),
    maxInFlight: luck.pick([1, 3, 500, 500]),
    isAimd: luck.chance(0.3),
    calls,
    faults: drawFaults(luck, { hosts, processes: count, hasStore: store !== undefined, spanMs }),
  };
}

function drawNetwork(luck: Luck, guardMs: number): NetworkPlan {
  return {
    delayMs: luck.pick([0, 1, 20, 80]),
    jitterMs: luck.pick([0, 1, guardMs - GUARD_SPARE_MS]),
    connectMs: luck.pick([0, 1, 30, 120]),
    coldMs: luck.pick([0, 5, 90]),
    keepAliveMs: luck.pick([50, 4000, 60_000]),
    headersTimeoutMs: luck.pick([1000, 8000]),
  };
}

function drawHost(luck: Luck, index: number, guardMs: number, processes: number): HostPlan {
  const model = luck.pick(["fixed-window", "sliding-log", "sliding-log", "tokens", "gcra", "two-buckets"] as const);
  const isSmooth = model === "two-buckets" || luck.chance(0.05);
  const roles = ALL_ROLES.filter((_, role) => role === 0 || luck.chance(0.35));
  const lanes: Partial<Record<Role, LanePlan>> = {};
  for (const role of roles) lanes[role] = drawLane(luck, isSmooth);
  return {
    name: `host-${index}.test`,
    lanes,
    total: !isSmooth && luck.chance(0.25) ? [{ limit: luck.whole(2, 12), windowMs: luck.pick([500, 1000, 3000]) }] : [],
    guardMs,
    isSmooth,
    server: {
      model,
      generosity: luck.chance(0.1) ? 0.5 : 1,
      enforcesConcurrency: processes === 1,
      serviceMs: luck.pick([0, 10, 200, 1500]),
      announces: luck.pick(["nothing", "nothing", "nothing", "ietf", "x-ratelimit", "crossref"]),
      maxAgeS: luck.pick([0, 0, 0, 5, 60]),
      wallOffsetMs: luck.pick([0, 0, 0, -90_000, 3_600_000]),
    },
  };
}

function drawLane(luck: Luck, isSmooth: boolean): LanePlan {
  const first: RatePlan = isSmooth
    ? { limit: luck.whole(3, 8), windowMs: luck.pick([5000, 10_000]) }
    : { limit: luck.whole(1, 10), windowMs: luck.pick([200, 1000, 1000, 3000]) };
  const second = { limit: first.limit + luck.whole(1, 10), windowMs: first.windowMs * luck.pick([4, 10]) };
  return {
    rates: !isSmooth && luck.chance(0.3) ? [first, second] : [first],
    maxDelayMs: luck.pick([0, 200, 2000, 20_000]),
    maxConcurrent: luck.pick([1, 2, 5, 100]),
    countsHead: luck.chance(0.5),
  };
}

function drawBreakers(luck: Luck): BreakerPlan {
  return {
    failMax: luck.pick([1, 2, 3, 5]),
    resetS: luck.pick([0.5, 2, 10]),
    trialCalls: luck.pick([1, 1, 2]),
    jitterMs: luck.pick([0, 150]),
    retryAfterCapS: luck.pick([5, 20]),
    isAdaptive: luck.chance(0.5),
    rolling: luck.chance(0.4)
      ? { threshold: luck.whole(2, 6), windowS: luck.pick([2, 30]), cooldownS: luck.pick([1, 5]) }
      : undefined,
  };
}

function drawProcess(luck: Luck): ProcessPlan {
  return {
    originUs: luck.pick([0, 1, 987_654_321_000]),
    wallOffsetMs: luck.pick([0, 0, 0, -5000, 700_000]),
    earlyUs: luck.pick([0, 0, 500, 1000]),
    creepUs: luck.pick([0, 0, 0, 20, 300]),
  };
}

/** Calls come in bursts, evenly, or both. */
function drawCalls(luck: Luck, hosts: readonly HostPlan[], processes: number, spanMs: number): readonly CallPlan[] {
  const count = luck.pick([4, 10, 18, 32]);
  const burstAtMs = luck.whole(0, spanMs);
  const isBursty = luck.chance(0.5);
  const pages = luck.pick([1, 5, 1000]);
  const calls: CallPlan[] = [];
  for (let id = 0; id < count; id += 1) {
    const { name, lanes, isSmooth } = luck.pick(hosts);
    const roles = Object.keys(lanes) as Role[];
    const role = luck.pick(roles);
    const least = Math.min(...(lanes[role]?.rates ?? []).map(({ limit }) => limit));
    const method = luck.pick(["GET", "GET", "GET", "GET", "GET", "HEAD", "POST"] as const);
    calls.push({
      id,
      atMs: isBursty && luck.chance(0.7) ? burstAtMs : luck.whole(0, spanMs),
      process: luck.whole(0, processes - 1),
      host: name,
      role,
      method,
      page: luck.whole(1, pages),
      // Evenly spaced sends leave room for one at a time.
      weight: !isSmooth && luck.chance(0.1) ? luck.whole(1, Math.min(3, least)) : 1,
      maxWaitMs: luck.pick([undefined, undefined, 0, 100, 3000, 60_000, Number.POSITIVE_INFINITY]),
      deadlineMs: luck.chance(0.15) ? luck.pick([50, 1000, 10_000]) : undefined,
      abortMs: luck.chance(0.1) ? luck.pick([0, 1, 20, 150, 2000]) : undefined,
      isRead: !luck.chance(0.05),
    });
  }
  return calls.sort((a, b) => a.atMs - b.atMs || a.id - b.id);
}

import type { SimFact, WireRequest } from "../../sim/facts.ts";
import type { LawMaker } from "../../sim/laws/law.ts";
import type { CallPlan, HostPlan, Plan } from "../../sim/plan.ts";

export const HOST = "host-0.test";

const host: HostPlan = {
  name: HOST,
  roleLimits: {
    metadata: { rates: [{ limit: 2, windowMs: 1000 }], maxDelayMs: 5000, maxConcurrent: 2, countsHead: true },
  },
  total: [],
  credits: undefined,
  guardMs: 25,
  isSmooth: false,
  server: {
    model: "sliding-log",
    enforcedShare: 1,
    enforcesConcurrency: true,
    serviceMs: 10,
    announces: "nothing",
    maxAgeS: 0,
    wallOffsetMs: 0,
  },
};

/** A small plan without faults. */
export function plainPlan(changes: Partial<Plan> = {}): Plan {
  return {
    seed: 1,
    network: { delayMs: 5, jitterMs: 0, connectMs: 1, coldMs: 0, keepAliveMs: 4000, headersTimeoutMs: 1000 },
    hosts: [host],
    breakers: {
      failMax: 2,
      resetS: 2,
      trialCalls: 1,
      jitterMs: 0,
      retryAfterCapS: 5,
      isAdaptive: false,
      rolling: undefined,
    },
    processes: [{ originUs: 0, wallOffsetMs: 0, earlyUs: 0, computeUs: 0 }],
    store: undefined,
    retryAttempts: 4,
    unreadBodyMs: 500,
    maxInFlight: 5,
    isAimd: false,
    startsWithTotals: true,
    calls: [],
    faults: [],
    ...changes,
  };
}

export function plainCall(changes: Partial<CallPlan> = {}): CallPlan {
  return {
    id: 0,
    atMs: 0,
    process: 0,
    host: HOST,
    role: "metadata",
    method: "GET",
    page: changes.id ?? 0,
    weight: 1,
    credits: undefined,
    usedCredits: 0,
    bodyMs: 0,
    maxWaitMs: undefined,
    deadlineMs: undefined,
    abortMs: undefined,
    isRead: true,
    ...changes,
  };
}

/** A request that was dispatched, written and received at one instant. */
export function requestAt(atMs: number, changes: Partial<WireRequest> = {}): WireRequest {
  const { call = plainCall({ id: atMs }) } = changes;
  return {
    id: atMs,
    process: call.process,
    call,
    attempt: 1,
    host: HOST,
    role: "metadata",
    key: HOST,
    breakerUnit: HOST,
    units: 1,
    credits: 0,
    usedCredits: 0,
    dispatchedUs: atMs * 1000,
    isCold: false,
    writtenUs: atMs * 1000,
    arrivedUs: atMs * 1000,
    endedUs: undefined,
    ...changes,
  };
}

/** The messages of a law for these facts. `touched` counts as changed in the turn of each fact. */
export function violationsOf(
  { make }: LawMaker,
  plan: Plan,
  facts: readonly SimFact[],
  touched: readonly WireRequest[] = [],
  occasion?: () => void,
): readonly string[] {
  const law = make(plan, () => occasion?.());
  return facts.map(fact => law.check(fact, new Set(touched))).filter(message => message !== undefined);
}

/** Draws a policy and the steps of one trace from a seed. */
import { Random } from "../../../sim/random.ts";
import { ROLES, type Role } from "../../../src/policy/roles.ts";
import type { PlainBudget, PlainPolicy, PlainRoles, PlainWindow } from "./plain-policy.ts";

export const HOSTS = ["a.example", "b.example", "c.example"];

export interface PlannedCall {
  readonly host: string;
  readonly role: Role;
  readonly weight: number;
  /** Undefined: the costs of the policy. */
  readonly credits: number | undefined;
  readonly isHead: boolean;
  /** Undefined: the bound of the policy. */
  readonly maxWaitMs: number | undefined;
}

export type TraceStep =
  | { readonly do: "call"; readonly call: PlannedCall }
  | { readonly do: "advance"; readonly ms: number }
  | { readonly do: "stall"; readonly ms: number }
  | { readonly do: "wall"; readonly ms: number }
  | { readonly do: "abort" | "release" | "giveBack"; readonly which: number }
  | { readonly do: "settle"; readonly which: number; readonly credits: number }
  | { readonly do: "answer"; readonly call: Pick<PlannedCall, "host" | "role">; readonly isThrottled: boolean }
  | { readonly do: "cooldown"; readonly call: Pick<PlannedCall, "host" | "role">; readonly ms: number }
  | { readonly do: "reload"; readonly policy: PlainPolicy };

export interface TracePlan {
  readonly seed: number;
  readonly policy: PlainPolicy;
  readonly steps: readonly TraceStep[];
  /** The call whose refusal is compared with the instant at which it is granted. */
  readonly last: PlannedCall;
  /** Nothing but calls, aborts and time: then a call that fits and precedes no other must be granted at once. */
  readonly isCalm: boolean;
}

/** Multiples of 80 ms: stretched by AIMD and spaced evenly, they are still whole milliseconds. */
const LENGTHS_MS = [80, 160, 320, 400, 800, 2400];
const LIMITS = [1, 2, 3, 4, 6];
const BOUNDS_MS = [undefined, undefined, 0, 50, 200, 1000, 5000, Number.POSITIVE_INFINITY];

export function drawTrace(seed: number): TracePlan {
  const random = new Random(seed);
  const isCalm = random.chance(0.25);
  const policy = drawPolicy(random, isCalm);
  const steps = Array.from({ length: random.whole(8, 45) }, () => drawStep(random, isCalm));
  return { seed, policy, steps, last: drawCall(random), isCalm };
}

function drawPolicy(random: Random, isCalm: boolean): PlainPolicy {
  const members = HOSTS.filter(() => random.chance(0.5));
  const listed = HOSTS.filter(() => random.chance(0.4));
  return {
    guardMs: random.pick([0, 0, 20]),
    maxDelayMs: random.pick([0, 100, 600, 3000]),
    countsHead: random.chance(0.3),
    callCredits: random.whole(0, 2),
    maxConcurrent: !isCalm && random.chance(0.2) ? random.whole(1, 3) : undefined,
    isAdaptive: !isCalm && random.chance(0.4),
    defaults: drawRoles(random, isCalm),
    hosts: Object.fromEntries(
      listed.map(host => [
        host,
        { roles: drawRoles(random, isCalm), total: random.chance(0.5) ? drawBudget(random, isCalm) : undefined },
      ]),
    ),
    service:
      members.length === 0
        ? undefined
        : { members, roles: drawRoles(random, isCalm), total: drawBudget(random, isCalm) },
  };
}

function drawRoles(random: Random, isCalm: boolean): PlainRoles {
  const [metadata, landing, artifact] = ROLES.map(() => drawBudget(random, isCalm));
  return { metadata, landing, artifact } as PlainRoles;
}

function drawBudget(random: Random, isCalm: boolean): PlainBudget {
  return {
    requests: drawWindows(random, random.pick([0, 1, 1, 1, 2]), LIMITS),
    // A window of 900 is coarse: it may admit a few units fewer.
    credits: drawWindows(random, random.pick([0, 0, 1, 2]), isCalm ? [6, 10, 40] : [6, 10, 40, 900]),
    isSmooth: !isCalm && random.chance(0.1),
  };
}

function drawWindows(random: Random, count: number, limits: readonly number[]): readonly PlainWindow[] {
  return Array.from({ length: count }, () => ({ limit: random.pick(limits), ms: random.pick(LENGTHS_MS) }));
}

function drawCall(random: Random): PlannedCall {
  return {
    host: random.pick(HOSTS),
    role: random.pick(["metadata", "metadata", ...ROLES]),
    weight: random.pick([1, 1, 1, 1, 2, 3]),
    credits: random.pick([undefined, 0, 1, 3, 6]),
    isHead: random.chance(0.1),
    maxWaitMs: random.pick(BOUNDS_MS),
  };
}

function drawStep(random: Random, isCalm: boolean): TraceStep {
  const dice = random.next();
  const which = random.whole(0, 1000);
  const call = drawCall(random);
  if (dice < 0.55) return { do: "call", call };
  if (dice < 0.75) return { do: "advance", ms: random.pick([1, 5, 40, 80, 160, 500, 2000]) };
  if (dice < 0.8) return { do: "abort", which };
  if (isCalm) return { do: "advance", ms: random.whole(1, 100) };
  if (dice < 0.84) return { do: "release", which };
  if (dice < 0.87) return { do: "giveBack", which };
  if (dice < 0.91) return { do: "settle", which, credits: random.pick([0, 1, 5, 20]) };
  if (dice < 0.94) return { do: "answer", call, isThrottled: random.chance(0.6) };
  if (dice < 0.955) return { do: "stall", ms: random.pick([30, 300, 3000]) };
  if (dice < 0.965) return { do: "wall", ms: random.pick([-3_600_000, 60_000]) };
  if (dice < 0.975) return { do: "cooldown", call, ms: random.pick([10, 200, 1500]) };
  return { do: "reload", policy: drawPolicy(random, false) };
}

import type { Fault, HostPlan } from "./plan.ts";
import type { Random } from "./random.ts";

export interface FaultBounds {
  readonly hosts: readonly HostPlan[];
  readonly processes: number;
  readonly hasStore: boolean;
  readonly spanMs: number;
}

const FORMS = [
  ...(["seconds", "seconds", "fraction", "date", "date-alone", "rfc850", "asctime", "twice"] as const),
  ...(["none", "zero", "past", "negative", "junk", "huge"] as const),
] as const;

type Draw = (random: Random, bounds: FaultBounds, atMs: number) => Fault;

const ANYWHERE: readonly Draw[] = [
  (random, bounds, atMs) => ({
    kind: "stall",
    atMs,
    process: random.whole(0, bounds.processes - 1),
    ms: random.pick([100, 500, 2000, 10_000]),
  }),
  (random, _, atMs) => ({ kind: "suspend", atMs, ms: random.pick([500, 5000, 60_000]) }),
  (random, bounds, atMs) => ({
    kind: "wall-step",
    atMs,
    process: random.whole(0, bounds.processes - 1),
    ms: random.pick([-3_600_000, -2000, 2000, 3_600_000]),
  }),
  outage,
  outage,
  throttle,
  throttle,
  throttle,
  (random, bounds, atMs) => ({
    kind: "lie",
    atMs,
    ms: random.whole(100, bounds.spanMs),
    host: random.pick(bounds.hosts).name,
    lie: random.pick(["junk", "absurd", "spent", "looser", "contradiction"] as const),
  }),
  (random, _, atMs) => ({ kind: "reload", atMs, factor: random.pick([0.5, 1, 2]), hasTotals: random.chance(0.7) }),
  (random, bounds, atMs) => ({
    kind: "operator",
    atMs,
    process: random.whole(0, bounds.processes - 1),
    host: random.pick(bounds.hosts).name,
    openS: random.pick([0, 0, 1, 8]),
  }),
];

const WITH_STORE: readonly Draw[] = [
  (random, _, atMs) => ({
    kind: "store-away",
    atMs,
    ms: random.pick([20, 500, 3000, 20_000]),
    isSilent: random.chance(0.5),
  }),
  (_random, _bounds, atMs) => ({ kind: "store-restart", atMs }),
  (random, _, atMs) => ({ kind: "store-loss", atMs, lostMs: random.pick([50, 1000, 5000]) }),
  (random, bounds, atMs) => ({ kind: "kill", atMs, process: random.whole(0, bounds.processes - 1) }),
];

/** No faults in a third of all worlds, because some laws are stricter without faults. */
export function drawFaults(random: Random, bounds: FaultBounds): readonly Fault[] {
  const count = random.pick([0, 0, 1, 1, 2, 4]);
  const draws = bounds.hasStore && random.chance(0.5) ? [...ANYWHERE, ...WITH_STORE, ...WITH_STORE] : ANYWHERE;
  const faults = Array.from({ length: count }, () =>
    random.pick(draws)(random, bounds, random.whole(0, bounds.spanMs)),
  );
  return withoutClashes(faults).sort((a, b) => a.atMs - b.atMs);
}

function outage(random: Random, bounds: FaultBounds, atMs: number): Fault {
  return {
    kind: "outage",
    atMs,
    ms: random.pick([200, 2000, 15_000]),
    host: random.pick(bounds.hosts).name,
    how: random.pick(["refuse", "reset", "hang", "error", "cut"] as const),
  };
}

function throttle(random: Random, bounds: FaultBounds, atMs: number): Fault {
  return {
    kind: "throttle",
    atMs,
    ms: random.pick([50, 1000, 8000]),
    host: random.pick(bounds.hosts).name,
    status: random.pick([429, 429, 503, 403] as const),
    form: random.pick(FORMS),
    seconds: random.pick([1, 2, 10, 60]),
  };
}

/** Keeps one fault of each kind for each host or process: the end of one would also end the other. */
function withoutClashes(faults: readonly Fault[]): Fault[] {
  const seen = new Set<string>();
  return faults.filter(fault => {
    const place = "host" in fault ? fault.host : "process" in fault ? fault.process : "";
    const key = `${fault.kind} ${fault.kind === "operator" ? fault.atMs : place}`;
    return seen.size !== seen.add(key).size;
  });
}

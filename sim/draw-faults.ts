import type { Fault, HostPlan } from "./plan.ts";
import type { Luck } from "./random.ts";

export interface FaultRoom {
  readonly hosts: readonly HostPlan[];
  readonly processes: number;
  readonly hasStore: boolean;
  readonly spanMs: number;
}

const FORMS = [
  ...(["seconds", "seconds", "fraction", "date", "date-alone", "rfc850", "asctime", "twice"] as const),
  ...(["none", "zero", "past", "negative", "junk", "huge"] as const),
] as const;

type Draw = (luck: Luck, room: FaultRoom, atMs: number) => Fault;

const ANYWHERE: readonly Draw[] = [
  (luck, room, atMs) => ({
    kind: "stall",
    atMs,
    process: luck.whole(0, room.processes - 1),
    ms: luck.pick([100, 500, 2000, 10_000]),
  }),
  (luck, _, atMs) => ({ kind: "suspend", atMs, ms: luck.pick([500, 5000, 60_000]) }),
  (luck, room, atMs) => ({
    kind: "wall-step",
    atMs,
    process: luck.whole(0, room.processes - 1),
    ms: luck.pick([-3_600_000, -2000, 2000, 3_600_000]),
  }),
  outage,
  outage,
  throttle,
  throttle,
  throttle,
  (luck, room, atMs) => ({
    kind: "lie",
    atMs,
    ms: luck.whole(100, room.spanMs),
    host: luck.pick(room.hosts).name,
    lie: luck.pick(["junk", "absurd", "spent", "looser", "contradiction"] as const),
  }),
  (luck, _, atMs) => ({ kind: "reload", atMs, factor: luck.pick([0.5, 1, 2]) }),
  (luck, room, atMs) => ({
    kind: "operator",
    atMs,
    process: luck.whole(0, room.processes - 1),
    host: luck.pick(room.hosts).name,
    openS: luck.pick([0, 0, 1, 8]),
  }),
];

const WITH_STORE: readonly Draw[] = [
  (luck, _, atMs) => ({
    kind: "store-away",
    atMs,
    ms: luck.pick([20, 500, 3000, 20_000]),
    isSilent: luck.chance(0.5),
  }),
  (_luck, _room, atMs) => ({ kind: "store-restart", atMs }),
  (luck, _, atMs) => ({ kind: "store-loss", atMs, lostMs: luck.pick([50, 1000, 5000]) }),
  (luck, room, atMs) => ({ kind: "kill", atMs, process: luck.whole(0, room.processes - 1) }),
];

/** None in a third of all worlds: what must hold on a good day is the stricter test. */
export function drawFaults(luck: Luck, room: FaultRoom): readonly Fault[] {
  const count = luck.pick([0, 0, 1, 1, 2, 4]);
  const draws = room.hasStore && luck.chance(0.5) ? [...ANYWHERE, ...WITH_STORE, ...WITH_STORE] : ANYWHERE;
  const faults = Array.from({ length: count }, () => luck.pick(draws)(luck, room, luck.whole(0, room.spanMs)));
  return withoutClashes(faults).sort((a, b) => a.atMs - b.atMs);
}

function outage(luck: Luck, room: FaultRoom, atMs: number): Fault {
  return {
    kind: "outage",
    atMs,
    ms: luck.pick([200, 2000, 15_000]),
    host: luck.pick(room.hosts).name,
    how: luck.pick(["refuse", "reset", "hang", "error", "cut"] as const),
  };
}

function throttle(luck: Luck, room: FaultRoom, atMs: number): Fault {
  return {
    kind: "throttle",
    atMs,
    ms: luck.pick([50, 1000, 8000]),
    host: luck.pick(room.hosts).name,
    status: luck.pick([429, 429, 503, 403] as const),
    form: luck.pick(FORMS),
    seconds: luck.pick([1, 2, 10, 60]),
  };
}

/** The same fault twice at one place would end the first when the second does; one of each kind is kept. */
function withoutClashes(faults: readonly Fault[]): Fault[] {
  const seen = new Set<string>();
  return faults.filter(fault => {
    const place = "host" in fault ? fault.host : "process" in fault ? fault.process : "";
    const key = `${fault.kind} ${fault.kind === "operator" ? fault.atMs : place}`;
    return seen.size !== seen.add(key).size;
  });
}

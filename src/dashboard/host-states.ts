import { breakerReasonText } from "../breaker/breaker-reason.ts";
import { type DecidedBy, describeConstraint } from "../errors.ts";
import type { HoldSnapshot, KeySnapshot, LimitOrderSnapshot } from "../limiter/key-snapshot.ts";
import { orderedLimitsText } from "../policy/limit-order-check.ts";
import { isServiceName } from "../policy/service-name.ts";
import { attentionOf } from "./attention.ts";
import type {
  CircuitRowState,
  CircuitStateName,
  HoldState,
  HostState,
  KeyState,
  OrderState,
  WindowState,
} from "./dashboard-state.ts";

/** The breaker of a host, service or resolver, as a hub or a store reports it. */
export interface BreakerFacts {
  readonly kind: "host" | "resolver";
  readonly name: string;
  readonly state: CircuitStateName;
  readonly reason: string | null | undefined;
  readonly remainingMs: number;
  /** In cooldown, which refuses every role. */
  readonly isCooling: boolean;
  readonly windowFailures: number;
  readonly circuits: readonly {
    readonly name: string;
    readonly state: CircuitStateName;
    readonly remainingMs: number;
    readonly probes: number;
    readonly failures?: number;
  }[];
}

/** The shown part of a key, and the setting behind the limit that a new request would wait for, if the source knows it. */
export interface KeyFact
  extends Pick<
      KeySnapshot,
      "key" | "role" | "windows" | "acquired" | "refused" | "inFlight" | "maxConcurrent" | "waiting"
    >,
    Pick<KeySnapshot, "estimatedWaitMs" | "constraint" | "multiplier" | "guardMs" | "shape">,
    Partial<Pick<KeySnapshot, "hold" | "order" | "totalOrder">> {
  readonly decidedBy?: DecidedBy | null;
  /** Whether `maxConcurrent` is for all processes together. @default false: each process has as many slots of its own */
  readonly sharesSlots?: boolean;
}

/** The keys of one process, and how old their state is. */
export interface KeyFacts {
  readonly keys: readonly KeyFact[];
  readonly ageMs: number;
}

/** Instants that are computed from remaining times differ a little. Two that are closer than this are the same. */
const SAME_INSTANT_MS = 1500;

/**
 * Every host, service and resolver with a breaker or a key, the one that needs most attention first. Instants that have
 * not changed are taken from the previous state `before`, so that an unchanged host has equal states.
 */
export function hostStates(
  breakers: readonly BreakerFacts[],
  processes: readonly KeyFacts[],
  nowMs: number,
  before: ReadonlyMap<string, HostState> = new Map(),
): readonly HostState[] {
  const keys = new Map<string, Map<string, KeyState>>();
  for (const { keys: snapshots, ageMs } of processes) {
    for (const snapshot of snapshots) {
      const roles = keys.get(snapshot.key) ?? new Map<string, KeyState>();
      keys.set(snapshot.key, roles);
      const shown = before.get(snapshot.key)?.keys.find(({ role }) => role === snapshot.role);
      const state = keyState(snapshot, ageMs, nowMs, shown);
      const known = roles.get(snapshot.role);
      roles.set(snapshot.role, known === undefined ? state : merged(known, state, snapshot.sharesSlots === true));
    }
  }
  const shownName = ({ kind, name }: BreakerFacts) => (kind === "resolver" ? `resolver ${name}` : name);
  const withBreaker = new Set(breakers.map(shownName));
  const others = [...keys.keys()].filter(name => !withBreaker.has(name)).map(closedStatus);
  return [...breakers, ...others]
    .map(breaker => {
      const name = shownName(breaker);
      return hostState({ ...breaker, name }, [...(keys.get(name)?.values() ?? [])], nowMs, before.get(name));
    })
    .sort((a, b) => b.attention - a.attention || (a.name < b.name ? -1 : 1));
}

function hostState(
  breaker: BreakerFacts,
  keys: readonly KeyState[],
  nowMs: number,
  before: HostState | undefined,
): HostState {
  const { name, kind, state, reason, remainingMs, isCooling, windowFailures } = breaker;
  const circuits = breaker.circuits.map((circuit): CircuitRowState => {
    const known = before?.circuits.find(({ role }) => role === circuit.name);
    return {
      role: circuit.name,
      state: circuit.state,
      failures: circuit.failures ?? null,
      probes: circuit.probes,
      untilMs: instantOf(circuit.remainingMs, nowMs, known?.untilMs),
    };
  });
  const unranked = {
    name,
    kind: kind === "host" && isServiceName(name) ? ("service" as const) : kind,
    state,
    reason: reason ? breakerReasonText(reason) : null,
    untilMs: instantOf(remainingMs, nowMs, before?.untilMs),
    isCooling,
    windowFailures,
    circuits,
    keys: keys.toSorted((a, b) => ROLE_ORDER.indexOf(a.role) - ROLE_ORDER.indexOf(b.role)),
  };
  return { ...unranked, ...attentionOf(unranked) };
}

const ROLE_ORDER: readonly string[] = ["metadata", "landing", "artifact"];

function instantOf(remainingMs: number, nowMs: number, before: number | null | undefined): number | null {
  if (remainingMs <= 0) return null;
  const atMs = Math.round(nowMs + remainingMs);
  return typeof before === "number" && Math.abs(before - atMs) < SAME_INSTANT_MS ? before : atMs;
}

function keyState(snapshot: KeyFact, ageMs: number, nowMs: number, before: KeyState | undefined): KeyState {
  const { key, role, acquired, refused, inFlight, maxConcurrent, waiting, multiplier, guardMs, shape } = snapshot;
  const { constraint, hold, order, totalOrder } = snapshot;
  const newCallMs = Math.max(0, snapshot.estimatedWaitMs - ageMs);
  return {
    role,
    windows: snapshot.windows.map(({ rate, used, limit, isLearned }) => ({ rate, used, limit, isLearned })),
    acquired,
    refused,
    inFlight,
    // JSON has no Infinity: a key without a limit arrives from a store as null.
    maxConcurrent: maxConcurrent !== null && Number.isFinite(maxConcurrent) ? maxConcurrent : null,
    waiting,
    newCallMs,
    limitedBy:
      constraint === undefined ? null : constraint.owner === key ? constraint.limit : describeConstraint(constraint),
    decidedBy: snapshot.decidedBy?.where ?? null,
    isHeld: constraint?.kind === "cooldown" && newCallMs > 0,
    hold: hold === undefined ? null : holdState(hold, ageMs, nowMs, before?.hold ?? null),
    order: order === undefined ? null : orderState(order, ageMs, nowMs, before?.order ?? null),
    totalOrder:
      totalOrder === undefined
        ? null
        : { owner: totalOrder.owner, ...orderState(totalOrder, ageMs, nowMs, before?.totalOrder ?? null) },
    pace: Number(multiplier.toFixed(3)),
    guardMs,
    shape,
    processes: 1,
  };
}

function holdState(
  { target, reason, remainingMs }: HoldSnapshot,
  ageMs: number,
  nowMs: number,
  before: HoldState | null,
): HoldState {
  return { target, reason, untilMs: instantOf(remainingMs - ageMs, nowMs, before?.untilMs) };
}

function orderState(order: LimitOrderSnapshot, ageMs: number, nowMs: number, before: OrderState | null): OrderState {
  const { rates, maxConcurrent, reason, by, isLooser, policyRates, policyMaxConcurrent, remainingMs } = order;
  const untilMs = instantOf(remainingMs - ageMs, nowMs, before?.untilMs);
  const limits = orderedLimitsText(rates, maxConcurrent);
  const policyLimits = orderedLimitsText(rates === "" ? "" : policyRates, policyMaxConcurrent);
  return { limits, reason, by, isLooser, policyLimits, untilMs };
}

/** One key in two processes: usage and slots are added up, and the other fields have the worse value. */
function merged(a: KeyState, b: KeyState, sharesSlots: boolean): KeyState {
  const later = b.newCallMs > a.newCallMs ? b : a;
  return {
    role: a.role,
    windows: mergedWindows(a.windows, b.windows),
    acquired: a.acquired + b.acquired,
    refused: a.refused + b.refused,
    inFlight: a.inFlight + b.inFlight,
    maxConcurrent: sharesSlots ? least(a.maxConcurrent, b.maxConcurrent) : sum(a.maxConcurrent, b.maxConcurrent),
    waiting: a.waiting + b.waiting,
    newCallMs: later.newCallMs,
    limitedBy: later.limitedBy ?? a.limitedBy ?? b.limitedBy,
    decidedBy: later.decidedBy ?? a.decidedBy ?? b.decidedBy,
    isHeld: a.isHeld || b.isHeld,
    hold: a.hold ?? b.hold,
    order: a.order ?? b.order,
    totalOrder: a.totalOrder ?? b.totalOrder,
    pace: Math.min(a.pace, b.pace),
    guardMs: Math.max(a.guardMs, b.guardMs),
    shape: a.shape === "smooth" ? "smooth" : b.shape,
    processes: a.processes + b.processes,
  };
}

/** Processes with different policies have different windows; windows of the same rate are merged. */
function mergedWindows(a: readonly WindowState[], b: readonly WindowState[]): readonly WindowState[] {
  const byRate = new Map(a.map(window => [window.rate, window]));
  for (const window of b) {
    const known = byRate.get(window.rate);
    byRate.set(window.rate, known === undefined ? window : { ...known, used: known.used + window.used });
  }
  return [...byRate.values()];
}

function least(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b);
}

/** Null if one of them has no limit. */
function sum(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b;
}

function closedStatus(name: string): BreakerFacts {
  const noFailures = { remainingMs: 0, isCooling: false, windowFailures: 0, circuits: [] };
  return { kind: "host", name, state: "closed", reason: null, ...noFailures };
}

/**
 * Orders of an operator in the record of a host or resolver (law B11). Pure: each function takes a record and returns
 * the next one, or the same object when nothing changed.
 *
 * An order is versioned by the serial that it gives to what it changes. A process writes its own state together with the
 * record on which that state is based: if the store holds a newer order than that record, the state is not written.
 */
import {
  type BreakerCooldownRecord,
  type BreakerRecord,
  type CircuitRecord,
  circuitRecordOf,
  clearBreakerRecord,
  isSerialAfter,
  nextSerial,
} from "./breaker-record.ts";
import { type HoldOrder, orderedHolds } from "./hold-orders.ts";
import { type LimitOrder, orderedLimits } from "./limit-orders.ts";
import { newerByRole, type RoleRecords } from "./role-records.ts";

/** What an operator orders for a host or resolver, or for one circuit of a host. */
export type BreakerOrder = {
  /** The circuit that it is for: a role. Undefined for the whole host. A resolver has the one circuit "". */
  readonly circuit?: string | undefined;
} & (
  | {
      readonly kind: "open";
      readonly durationUs: number;
      readonly reason: string;
      /** Replaces a running order, even one that ends later. Otherwise the later end counts. */
      readonly isReplacing?: boolean | undefined;
    }
  | { readonly kind: "close" }
  /** `circuits` are the names of all circuits of the host. They become half-open if the order is for the whole host. */
  | { readonly kind: "half-open"; readonly circuits: readonly string[] }
);

/** Any order of an operator. Circuits, holds and changed limits of one host have versions of their own. */
export type OperatorOrder = BreakerOrder | RoleOrder;

/** An order for the rate limits of some roles. */
export type RoleOrder = HoldOrder | LimitOrder;

type IsIgnored = (order: BreakerCooldownRecord) => boolean;

const NONE: RoleRecords<never> = Object.freeze({});

/**
 * Orders are kept for a day after they were given, and an order to open for a day after its end. Until then a process
 * that returns from an outage finds them.
 */
const KEPT_US = 86_400_000_000;

/**
 * Writes an order into the record. Of two orders to open the later end counts, unless the newer one replaces the other.
 * Returns the same record if a newer order was given.
 * @param givenUs when it was given: earlier than `nowUs` if the store was away then
 */
export function giveOrder(record: BreakerRecord, order: OperatorOrder, nowUs: number, givenUs = nowUs): BreakerRecord {
  if ("roles" in order) return withRoleOrder(record, order, nowUs, givenUs);
  // A newer order to open stays, but what is older than an order to close or half-open ends all the same.
  const isNewer = ({ serial }: BreakerCooldownRecord) => order.kind !== "open" && isSerialAfter(serial, givenUs, nowUs);
  const known = orderVersion(record, order.circuit, isNewer);
  if (isSerialAfter(known, givenUs, nowUs)) return record;
  const version = nextSerial(known, givenUs);
  const next =
    order.kind === "open" ? opened(record, order, version, nowUs) : cleared(record, order, version, nowUs, givenUs);
  if (next === record) return record;
  // The ends in the old record count too: a process that has not read the order yet may keep a circuit open until then.
  const lastUs = Math.max(nowUs, lastEndUs(record), lastEndUs(next));
  return { ...next, ordersKeptUntilUs: Math.max(record.ordersKeptUntilUs ?? 0, lastUs + KEPT_US) };
}

/**
 * Writes an order for a host into the record of one of its partitions, with the version that it has for the host. The
 * same record if that has the order, or a newer one.
 */
export function passOrder(record: BreakerRecord, order: BreakerOrder, nowUs: number, version: number): BreakerRecord {
  return orderVersion(record, order.circuit) >= version ? record : giveOrder(record, order, nowUs, version);
}

/**
 * The version of the newest order for the whole host; for a circuit, of the newest one that has set its state: an order
 * for it, or one that has closed or half-opened the host. 0 for none.
 * @param isIgnored selects orders to open that do not count. @default none
 */
export function orderVersion(record: BreakerRecord, circuit?: string, isIgnored: IsIgnored = () => false): number {
  if (circuit !== undefined) return Math.max(record.epoch, circuitVersion(circuitRecordOf(record, circuit), isIgnored));
  const { epoch, operatorCooldown } = record;
  return isIgnored(operatorCooldown) ? epoch : Math.max(epoch, operatorCooldown.serial);
}

/**
 * Whether the record holds an order to close or half-open that `known` does not have. State that a process has based on
 * `known` is then older than the order.
 * @param ownVersion of the last such order that the process has given itself before its state changed
 */
export function isClearedSince(record: BreakerRecord, known: BreakerRecord, circuit?: string, ownVersion = 0): boolean {
  if (record.epoch > Math.max(known.epoch, ownVersion)) return true;
  if (circuit === undefined) return false;
  const { epoch = 0 } = circuitRecordOf(known, circuit);
  return (circuitRecordOf(record, circuit).epoch ?? 0) > Math.max(epoch, ownVersion);
}

/**
 * Adds the orders of `known` that `record` lacks: the store has lost them, or an older state was written over them.
 * Returns `record` itself if it lacks none.
 */
export function restoreOrders(record: BreakerRecord, known: BreakerRecord): BreakerRecord {
  const [base, other] = known.epoch > record.epoch ? [known, record] : [record, known];
  const holds = newerByRole(base.holds ?? NONE, other.holds ?? NONE);
  const limits = newerByRole(base.limits ?? NONE, other.limits ?? NONE);
  const isOpenNewer = other.operatorCooldown.serial > orderVersion(base);
  const newer = Object.entries(other.circuits).filter(([name, circuit]) => {
    const ofBase = circuitRecordOf(base, name);
    const version = Math.max(base.epoch, circuitVersion(ofBase));
    // A circuit that was opened after the order that the store has lost stays open.
    const isOpenedSince = base === known && !circuit.isClosed && circuit.serial > Math.max(version, ofBase.serial);
    return circuitVersion(circuit) > version || isOpenedSince;
  });
  const keepsCooldown = base === known && record.serverCooldown.serial > known.epoch;
  const hasAllRoleOrders = holds === (base.holds ?? NONE) && limits === (base.limits ?? NONE);
  const isComplete = !isOpenNewer && newer.length === 0 && hasAllRoleOrders;
  if (base === record && isComplete) return record;
  return {
    ...base,
    ...(holds !== NONE && { holds }),
    ...(limits !== NONE && { limits }),
    serverCooldown: keepsCooldown ? record.serverCooldown : base.serverCooldown,
    operatorCooldown: isOpenNewer ? other.operatorCooldown : base.operatorCooldown,
    circuits: { ...base.circuits, ...Object.fromEntries(newer) },
    ordersKeptUntilUs: Math.max(record.ordersKeptUntilUs ?? 0, known.ordersKeptUntilUs ?? 0),
  };
}

function withRoleOrder(record: BreakerRecord, order: RoleOrder, nowUs: number, givenUs: number): BreakerRecord {
  const isHold = order.kind === "hold" || order.kind === "release";
  const next = isHold
    ? { ...record, holds: orderedHolds(record, order, nowUs, givenUs) }
    : { ...record, limits: orderedLimits(record, order, nowUs, givenUs) };
  if (next.holds === record.holds && next.limits === record.limits) return record;
  const keptUntilUs = Math.max(nowUs, lastRoleEndUs(record), lastRoleEndUs(next)) + KEPT_US;
  return { ...next, ordersKeptUntilUs: Math.max(record.ordersKeptUntilUs ?? 0, keptUntilUs) };
}

function lastRoleEndUs({ holds = NONE, limits = NONE }: BreakerRecord): number {
  return Math.max(0, ...[...Object.values(holds), ...Object.values(limits)].map(({ untilUs }) => untilUs));
}

/** The version of the newest order for this circuit alone; 0 for none. */
function circuitVersion({ epoch = 0, order }: CircuitRecord, isIgnored: IsIgnored = () => false): number {
  return order === undefined || isIgnored(order) ? epoch : Math.max(epoch, order.serial);
}

function opened(
  record: BreakerRecord,
  { circuit, durationUs, reason, isReplacing = false }: BreakerOrder & { readonly kind: "open" },
  serial: number,
  nowUs: number,
): BreakerRecord {
  const current = circuit === undefined ? record.operatorCooldown : circuitRecordOf(record, circuit).order;
  const untilUs = nowUs + durationUs;
  // An order that ends later stays, with the new version: it must not be ended by an older order.
  const isCovered = !isReplacing && current !== undefined && current.untilUs >= untilUs;
  const order = isCovered ? { ...current, serial } : { serial, untilUs, reason };
  if (circuit === undefined) return { ...record, operatorCooldown: order };
  return withCircuit(record, circuit, { ...circuitRecordOf(record, circuit), order });
}

function cleared(
  record: BreakerRecord,
  order: BreakerOrder & { readonly kind: "close" | "half-open" },
  version: number,
  nowUs: number,
  givenUs: number,
): BreakerRecord {
  const { circuit, kind } = order;
  const halfOpened = kind === "half-open" && ({ isHalfOpened: true } as const);
  const isNewer = ({ serial }: BreakerCooldownRecord) => isSerialAfter(serial, givenUs, nowUs);
  const clearedOrNewer = (name: string): CircuitRecord => {
    const known = circuitRecordOf(record, name);
    // Newer orders for one circuit stay, and so does a circuit that failures have opened since.
    if (isSerialAfter(known.epoch ?? 0, givenUs, nowUs)) return known;
    const { order, isHalfOpened: _, ...state } = known;
    const newerOrder = order !== undefined && isNewer(order) && ({ order } as const);
    if (!isOpenedSince(known, givenUs, nowUs))
      return { ...clearedCircuit(record, name, kind, version, nowUs, givenUs), ...newerOrder };
    // An order to open that is older than this one ends all the same.
    if (order === undefined || newerOrder) return known;
    return { ...state, serial: nextSerial(known.serial, nowUs), epoch: version, ...halfOpened };
  };
  if (circuit !== undefined) {
    const next = clearedOrNewer(circuit);
    return next === circuitRecordOf(record, circuit) ? record : withCircuit(record, circuit, next);
  }
  const names = new Set([...Object.keys(record.circuits), ...(order.kind === "half-open" ? order.circuits : [])]);
  const { serverCooldown, operatorCooldown } = record;
  // By `givenUs`, not `nowUs`: a Retry-After that came after the order may not be written yet, and must then be newer.
  const cleared = clearBreakerRecord(record, givenUs);
  return {
    ...cleared,
    serverCooldown: isNewer(serverCooldown) ? serverCooldown : cleared.serverCooldown,
    epoch: version,
    ...halfOpened,
    operatorCooldown: isNewer(operatorCooldown) ? operatorCooldown : { serial: version, untilUs: 0, reason: "" },
    circuits: Object.fromEntries(Array.from(names, name => [name, clearedOrNewer(name)])),
  };
}

function clearedCircuit(
  record: BreakerRecord,
  name: string,
  kind: "close" | "half-open",
  epoch: number,
  nowUs: number,
  givenUs: number,
): CircuitRecord {
  // By `givenUs`, as for a cooldown: a circuit that was opened after the order may not be written yet.
  const serial = nextSerial(circuitRecordOf(record, name).serial, givenUs);
  const state = kind === "close" ? { isClosed: true, untilUs: 0 } : { isClosed: false, untilUs: nowUs };
  return { serial, ...state, reopened: 0, probes: [], epoch, ...(kind === "half-open" && { isHalfOpened: true }) };
}

/** Whether failures have opened the circuit after the order was given. The serial also grows with each trial call. */
function isOpenedSince(
  // A circuit that an operator has made half-open was opened by no failure.
  { isClosed, serial, epoch, openedUs = epoch === undefined ? serial : 0 }: CircuitRecord,
  givenUs: number,
  nowUs: number,
): boolean {
  return !isClosed && isSerialAfter(openedUs, givenUs, nowUs);
}

/** The last order to close or half-open the host, or the circuit alone. */
export function lastClearing(record: BreakerRecord, circuit?: string): BreakerOrder {
  const { isHalfOpened = false } = circuit === undefined ? record : circuitRecordOf(record, circuit);
  if (!isHalfOpened) return { kind: "close", circuit };
  return { kind: "half-open", circuit, circuits: Object.keys(record.circuits) };
}

function withCircuit(record: BreakerRecord, name: string, circuit: CircuitRecord): BreakerRecord {
  return { ...record, circuits: { ...record.circuits, [name]: circuit } };
}

function lastEndUs({ serverCooldown, operatorCooldown, circuits }: BreakerRecord): number {
  const ends = Object.values(circuits).flatMap(({ untilUs, order }) => [untilUs, order?.untilUs ?? 0]);
  return Math.max(serverCooldown.untilUs, operatorCooldown.untilUs, ...ends);
}

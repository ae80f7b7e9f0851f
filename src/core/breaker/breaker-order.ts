/**
 * Orders of an operator in the record of a host or resolver (law B11). Pure: each function takes a record and returns
 * the next one, or the same object when nothing changed.
 *
 * An order is versioned by the serial that it gives to what it changes. A process writes its own state together with the
 * record on which that state is based: if the store holds a newer order than that record, the state is not written.
 */
import {
  type BreakerRecord,
  type CircuitRecord,
  circuitRecordOf,
  clearBreakerRecord,
  nextSerial,
} from "./breaker-record.ts";

/** What an operator orders for a host or resolver, or for one circuit of a host. */
export type BreakerOrder = {
  /** The circuit that it is for: a role. Undefined for the whole host. A resolver has the one circuit "". */
  readonly circuit?: string | undefined;
} & (
  | {
      readonly kind: "open";
      readonly durationUs: number;
      readonly reason: string;
      /** A longer order ends too. Otherwise the later end counts. */
      readonly isReplacing?: boolean | undefined;
    }
  | { readonly kind: "close" }
  /** `circuits` become half-open: all circuits of the host, by name. */
  | { readonly kind: "half-open"; readonly circuits: readonly string[] }
);

/**
 * Orders are kept for a day after they were given, and an order to open for a day after its end. Until then a process
 * that returns from an outage finds them.
 */
const KEPT_US = 86_400_000_000;

/** Writes an order into the record. The same record, if an order to open ends no later than the one it has. */
export function giveOrder(record: BreakerRecord, order: BreakerOrder, nowUs: number): BreakerRecord {
  const next = order.kind === "open" ? opened(record, order, nowUs) : cleared(record, order, nowUs);
  if (next === record) return record;
  // Also after the end of what the order has ended: a process that has not read the order yet may still hold that.
  const lastUs = Math.max(nowUs, lastEndUs(record), lastEndUs(next));
  return { ...next, ordersKeptUntilUs: Math.max(record.ordersKeptUntilUs ?? 0, lastUs + KEPT_US) };
}

/** The version of the newest order for a circuit, or for the whole host when it is undefined. 0 for none. */
export function orderVersion(record: BreakerRecord, circuit?: string): number {
  const host = Math.max(record.epoch, record.operatorCooldown.serial);
  if (circuit === undefined) return host;
  return Math.max(host, circuitVersion(circuitRecordOf(record, circuit)));
}

/**
 * Whether the record holds an order to close or half-open that `known` does not have: what a process based on `known` is
 * older than the order.
 */
export function isClearedSince(record: BreakerRecord, known: BreakerRecord, circuit?: string): boolean {
  if (record.epoch > known.epoch) return true;
  if (circuit === undefined) return false;
  return (circuitRecordOf(record, circuit).epoch ?? 0) > (circuitRecordOf(known, circuit).epoch ?? 0);
}

/**
 * Puts back the orders of `known` that `record` lacks, because the store has lost them or an older state was written to
 * a store that had. `record` itself, if it lacks none.
 */
export function restoreOrders(record: BreakerRecord, known: BreakerRecord): BreakerRecord {
  if (known.epoch > record.epoch) return known;
  const isOpenLost = known.operatorCooldown.serial > record.operatorCooldown.serial && known.epoch === record.epoch;
  const host = isOpenLost ? { ...record, operatorCooldown: known.operatorCooldown } : record;
  const lost = Object.entries(known.circuits).filter(
    ([name, circuit]) =>
      known.epoch === record.epoch && circuitVersion(circuit) > circuitVersion(circuitRecordOf(record, name)),
  );
  if (host === record && lost.length === 0) return record;
  return {
    ...host,
    circuits: { ...host.circuits, ...Object.fromEntries(lost) },
    ordersKeptUntilUs: Math.max(record.ordersKeptUntilUs ?? 0, known.ordersKeptUntilUs ?? 0),
  };
}

/** The version of the newest order for this circuit alone; 0 for none. */
function circuitVersion({ epoch = 0, order }: CircuitRecord): number {
  return Math.max(epoch, order?.serial ?? 0);
}

function opened(
  record: BreakerRecord,
  { circuit, durationUs, reason, isReplacing = false }: BreakerOrder & { readonly kind: "open" },
  nowUs: number,
): BreakerRecord {
  const current = circuit === undefined ? record.operatorCooldown : circuitRecordOf(record, circuit).order;
  const untilUs = nowUs + durationUs;
  if (!isReplacing && current !== undefined && current.untilUs >= untilUs) return record;
  const order = { serial: nextSerial(orderVersion(record, circuit), nowUs), untilUs, reason };
  if (circuit === undefined) return { ...record, operatorCooldown: order };
  return withCircuit(record, circuit, { ...circuitRecordOf(record, circuit), order });
}

function cleared(
  record: BreakerRecord,
  order: BreakerOrder & { readonly kind: "close" | "half-open" },
  nowUs: number,
): BreakerRecord {
  const { circuit } = order;
  const version = nextSerial(orderVersion(record, circuit), nowUs);
  if (circuit !== undefined)
    return withCircuit(record, circuit, clearedCircuit(record, circuit, order.kind, version, nowUs));
  const closed = { ...clearBreakerRecord(record, nowUs), epoch: version };
  if (order.kind === "close") return closed;
  const circuits = order.circuits.map(name => [name, clearedCircuit(record, name, order.kind, version, nowUs)]);
  return { ...closed, circuits: { ...closed.circuits, ...Object.fromEntries(circuits) } };
}

function clearedCircuit(
  record: BreakerRecord,
  name: string,
  kind: "close" | "half-open",
  version: number,
  nowUs: number,
): CircuitRecord {
  const { serial } = circuitRecordOf(record, name);
  const isClosed = kind === "close";
  return {
    serial: nextSerial(serial, nowUs),
    isClosed,
    untilUs: isClosed ? 0 : nowUs,
    reopened: 0,
    probes: [],
    epoch: version,
  };
}

function withCircuit(record: BreakerRecord, name: string, circuit: CircuitRecord): BreakerRecord {
  return { ...record, circuits: { ...record.circuits, [name]: circuit } };
}

function lastEndUs({ serverCooldown, operatorCooldown, circuits }: BreakerRecord): number {
  const ends = Object.values(circuits).flatMap(({ untilUs, order }) => [untilUs, order?.untilUs ?? 0]);
  return Math.max(serverCooldown.untilUs, operatorCooldown.untilUs, ...ends);
}

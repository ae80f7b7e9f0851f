import type { RoleRecords } from "./role-records.ts";

/**
 * The state of one host, or of one resolver, that processes share: cooldowns, circuits and running probes.
 * Pure: each function takes a record and returns the next one, or the same object when nothing changed.
 *
 * Every change of a part raises its serial. A process remembers the serials it has applied, so that it can tell new
 * records from known ones. A change based on an older serial has no effect (law B3). Serials follow the store's clock,
 * so that a store that lost its data does not reuse one.
 * Instants are those of the store's clock, and their names end in `Us`: stores rely on that to shift them.
 */
export interface BreakerRecord {
  /**
   * Raised when an operator closes or half-opens the whole host: a process that reads a new epoch clears its own state
   * from before that order.
   */
  readonly epoch: number;
  /** That order was one to half-open. Absent if it was one to close. */
  readonly isHalfOpened?: true;
  /** Set by responses (Retry-After, rolling window). A success ends this one, and never the operator's (law B5). */
  readonly serverCooldown: BreakerCooldownRecord;
  /** Set by an operator. Ended by time or an operator only. */
  readonly operatorCooldown: BreakerCooldownRecord;
  /** Keyed by role; a resolver has one circuit. */
  readonly circuits: Readonly<Record<string, CircuitRecord>>;
  /** An operator holds the calls of these roles, or has released them. Absent without such an order. */
  readonly holds?: HoldRecords;
  /** An operator has changed the limits of these roles or of `total`, or has ended such a change. Absent if not. */
  readonly limits?: LimitOrderRecords;
  /** Failures of the rolling window, over all roles. Absent if there are none. */
  readonly recentFailures?: readonly RecentFailures[];
  /** The record is kept at least until then, for the orders in it. Absent if there was no order. */
  readonly ordersKeptUntilUs?: number;
}

/**
 * A cooldown that ends at `untilUs`. If it is ended early, it stays in the record with `untilUs` 0, so that every
 * process reads that it has ended.
 */
export interface BreakerCooldownRecord {
  readonly serial: number;
  readonly untilUs: number;
  readonly reason: string;
}

export type HoldRecords = RoleRecords<BreakerCooldownRecord>;

/** Limits that an operator has ordered, until `untilUs`. */
export interface LimitOrderRecord extends BreakerCooldownRecord {
  /** As text: a rate has a field `windowUs`, and stores shift every number ending in `Us`. Empty if there are none. */
  readonly rates: string;
  /** Absent if the order leaves it as it is, and in records of older versions. */
  readonly maxConcurrent?: number;
  readonly isForced: boolean;
  readonly by: string;
}

export type LimitOrderRecords = RoleRecords<LimitOrderRecord>;

export interface CircuitRecord {
  readonly serial: number;
  readonly isClosed: boolean;
  /** Open before this instant, half-open after it. */
  readonly untilUs: number;
  /** When failures last opened it. Absent if they did not, and in records of older versions. */
  readonly openedUs?: number;
  /** Failed probes since the circuit was last closed. */
  readonly reopened: number;
  readonly probes: readonly ProbeRecord[];
  /** Raised when an operator closes or half-opens this circuit alone. Absent without such an order. */
  readonly epoch?: number;
  /** That order was one to half-open. Absent if it was one to close. */
  readonly isHalfOpened?: true;
  /** An operator has opened this circuit alone. Absent without such an order. */
  readonly order?: BreakerCooldownRecord;
  /**
   * Failures since the last success of a closed circuit; of a half-open one, the trial calls that never reached the host.
   * Absent if there are none. Does not raise `serial`.
   */
  readonly counts?: FailureCounts;
  /** The newest serial that `counts` ever had, so that none is used twice. Absent if there was no failure. */
  readonly lastCountSerial?: number;
}

/** A running probe. Leased, because its process may end without reporting. */
export interface ProbeRecord {
  readonly id: string;
  readonly expiresUs: number;
}

/** The failures of one circuit since the last success of any process. */
export interface FailureCounts {
  /** The serial of the first failure after the last success. A different one means that there was a success. */
  readonly sinceSerial: number;
  /** Failures of calls that reached the host; throttles are counted apart. */
  readonly reached: number;
  /** Throttles, where those of requests that were in flight together are one event (law B10). */
  readonly throttles: number;
  /**
   * The serial of the newest throttle; 0 for none. If another process is throttled before it has read this serial, that
   * is the same event.
   */
  readonly throttleSerial: number;
  /** The process that counted the newest throttle. */
  readonly throttledProcess: string;
  /** Failures of calls that never reached the host, by process. */
  readonly unreached: readonly UnreachedCount[];
  /** When the last of all these calls failed. Absent in records of older versions. */
  readonly lastUs?: number;
}

export interface UnreachedCount {
  readonly processId: string;
  readonly failures: number;
}

/** Failures of the rolling window. */
export interface RecentFailures {
  /** When the first of them happened. */
  readonly atUs: number;
  readonly failures: number;
  /** The process whose calls never reached the host; undefined for calls that did. */
  readonly unreachedProcess?: string;
}

const NO_COOLDOWN: BreakerCooldownRecord = Object.freeze({ serial: 0, untilUs: 0, reason: "" });
const NO_CIRCUIT: CircuitRecord = Object.freeze({ serial: 0, isClosed: true, untilUs: 0, reopened: 0, probes: [] });

export const EMPTY_BREAKER_RECORD: BreakerRecord = Object.freeze({
  epoch: 0,
  serverCooldown: NO_COOLDOWN,
  operatorCooldown: NO_COOLDOWN,
  circuits: {},
});

/** How long a record is kept after its last deadline, for processes that read it rarely. */
const RETENTION_US = 900_000_000;

/** The name of the one circuit in the record of a resolver; those of a host are named by their roles. */
export const RESOLVER_CIRCUIT = "";

export function circuitRecordOf({ circuits }: BreakerRecord, name: string): CircuitRecord {
  return circuits[name] ?? NO_CIRCUIT;
}

/**
 * Keeps the later of two deadlines; one that is over has no effect. A cooldown of the rolling window clears its failures
 * (law B6).
 * @param sinceUs when the cooldown began: earlier than `nowUs` if the store was away then. An order that was given after
 *   this instant ends the cooldown
 */
export function setCooldown(
  record: BreakerRecord,
  part: "serverCooldown" | "operatorCooldown",
  { untilUs, reason }: { readonly untilUs: number; readonly reason: string },
  nowUs: number,
  sinceUs = nowUs,
): BreakerRecord {
  const current = record[part];
  if (current.untilUs >= untilUs || untilUs <= nowUs) return record;
  const { recentFailures, ...kept } = record;
  const isCleared = reason === "rolling-window" || recentFailures === undefined;
  const next = { serial: nextSerial(current.serial, sinceUs), untilUs, reason };
  return { ...kept, ...(!isCleared && { recentFailures }), [part]: next };
}

/** A success ends the server's cooldown if `serial` is still the current one; never the operator's. */
export function endServerCooldown(record: BreakerRecord, serial: number, nowUs: number): BreakerRecord {
  const { serverCooldown } = record;
  if (serverCooldown.serial !== serial || serverCooldown.untilUs === 0) return record;
  return { ...record, serverCooldown: { serial: nextSerial(serial, nowUs), untilUs: 0, reason: "" } };
}

/**
 * A process counted `fail_max` failures, or its probe failed. A circuit that is open already keeps the later end. If
 * `untilUs` is over, because the process reports it late, the circuit is half-open.
 * @param sinceUs when the calls opened it: earlier than `nowUs` if the store was away then. An order that was given after
 *   this instant closes it
 */
export function openCircuit(
  record: BreakerRecord,
  name: string,
  { untilUs, reopened }: { readonly untilUs: number; readonly reopened: number },
  nowUs: number,
  sinceUs = nowUs,
): BreakerRecord {
  const current = circuitRecordOf(record, name);
  if (!current.isClosed && current.untilUs >= untilUs) return record;
  const maxReopened = current.isClosed ? reopened : Math.max(reopened, current.reopened);
  const { counts: _, ...kept } = current;
  const opened = { isClosed: false, untilUs, openedUs: sinceUs, reopened: maxReopened, probes: [] };
  return withCircuit(record, name, { ...kept, ...opened }, sinceUs);
}

/**
 * A probe succeeded. No effect when the circuit was opened again after the probe was sent. The failures of the outage no
 * longer count for the rolling window.
 */
export function closeCircuit(record: BreakerRecord, name: string, id: string, nowUs: number): BreakerRecord {
  const current = circuitRecordOf(record, name);
  if (current.isClosed || current.probes.every(probe => probe.id !== id)) return record;
  const { recentFailures: _, ...kept } = record;
  const { counts: __, openedUs: ___, ...others } = current;
  return withCircuit(kept, name, { ...others, ...NO_CIRCUIT, serial: current.serial }, nowUs);
}

/**
 * Adds a probe if the open time is over and fewer than `trialCalls` run in all processes; otherwise returns the same
 * record. A circuit without a record counts as half-open: the store has lost it, because a process requests a probe only
 * for a circuit that it knows to be half-open. For the
 * same reason an open time above `longestOpenUs` counts as over: the clock of the store was set back (law B8).
 */
export function leaseProbe(
  record: BreakerRecord,
  name: string,
  probe: ProbeRecord,
  trialCalls: number,
  nowUs: number,
  longestOpenUs = Number.POSITIVE_INFINITY,
): BreakerRecord {
  const current = circuitRecordOf(record, name);
  const isLost = current.serial === 0;
  const isOpen = current.untilUs > nowUs && current.untilUs - nowUs <= longestOpenUs;
  if ((current.isClosed && !isLost) || isOpen) return record;
  const running = current.probes.filter(({ expiresUs }) => expiresUs > nowUs);
  if (running.length >= trialCalls) return record;
  const untilUs = Math.min(current.untilUs, nowUs);
  return withCircuit(record, name, { ...current, isClosed: false, untilUs, probes: [...running, probe] }, nowUs);
}

/** Removes a probe, so that any process can send another one before its lease ends. */
export function returnProbeLease(record: BreakerRecord, name: string, id: string, nowUs: number): BreakerRecord {
  const current = circuitRecordOf(record, name);
  const probes = current.probes.filter(probe => probe.id !== id);
  return probes.length === current.probes.length ? record : withCircuit(record, name, { ...current, probes }, nowUs);
}

/**
 * An operator closed the circuits: ends all cooldowns and closes every circuit. Holds and changed limits stay: they say
 * nothing about the host.
 */
export function clearBreakerRecord(record: BreakerRecord, nowUs: number): BreakerRecord {
  const ended = ({ serial }: BreakerCooldownRecord) => ({ serial: nextSerial(serial, nowUs), untilUs: 0, reason: "" });
  const circuits = Object.entries(record.circuits).map(([name, { serial }]) => [
    name,
    { ...NO_CIRCUIT, serial: nextSerial(serial, nowUs) },
  ]);
  return {
    epoch: nextSerial(record.epoch, nowUs),
    serverCooldown: ended(record.serverCooldown),
    operatorCooldown: ended(record.operatorCooldown),
    circuits: Object.fromEntries(circuits),
    ...(record.holds !== undefined && { holds: record.holds }),
    ...(record.limits !== undefined && { limits: record.limits }),
  };
}

/** The cooldown that ends last, if any is still running. */
export function runningCooldown(
  { serverCooldown, operatorCooldown }: BreakerRecord,
  nowUs: number,
): BreakerCooldownRecord | undefined {
  const last = operatorCooldown.untilUs >= serverCooldown.untilUs ? operatorCooldown : serverCooldown;
  return last.untilUs > nowUs ? last : undefined;
}

/** When the record may be deleted. */
export function breakerRecordExpiryUs(
  { serverCooldown, operatorCooldown, circuits, ordersKeptUntilUs = 0 }: BreakerRecord,
  nowUs: number,
): number {
  let lastUs = Math.max(nowUs, serverCooldown.untilUs, operatorCooldown.untilUs);
  for (const { untilUs, probes } of Object.values(circuits))
    lastUs = Math.max(lastUs, untilUs, ...probes.map(({ expiresUs }) => expiresUs));
  return Math.max(lastUs + RETENTION_US, ordersKeptUntilUs);
}

function withCircuit(record: BreakerRecord, name: string, circuit: CircuitRecord, nowUs: number): BreakerRecord {
  return {
    ...record,
    circuits: { ...record.circuits, [name]: { ...circuit, serial: nextSerial(circuit.serial, nowUs) } },
  };
}

export function nextSerial(serial: number, nowUs: number): number {
  return Math.max(serial + 1, Math.floor(nowUs));
}

/**
 * Whether a serial was given after an instant. A serial in the future cannot be compared with instants: the clock of the
 * store was set back, or its machine was restarted. It counts as older.
 */
export function isSerialAfter(serial: number, instantUs: number, nowUs: number): boolean {
  return serial > instantUs && serial <= nowUs;
}

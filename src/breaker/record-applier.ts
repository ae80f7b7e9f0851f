import { lastClearing } from "../core/breaker/breaker-order.ts";
import {
  type BreakerCooldownRecord,
  type BreakerRecord,
  type CircuitRecord,
  circuitRecordOf,
  EMPTY_BREAKER_RECORD,
  type LimitOrderRecord,
  RESOLVER_CIRCUIT,
} from "../core/breaker/breaker-record.ts";
import { limitsOf } from "../core/breaker/limit-orders.ts";
import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import { formatRates } from "../core/limits/rate.ts";
import type { OpenReason } from "../errors.ts";
import { isLimitPart, isRole } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import type { Blocker, ChangeOrigin } from "./breaker-change.ts";
import type { BreakerTable } from "./breaker-table.ts";
import type { CircuitHolder, TimedOrder } from "./circuit-holder.ts";
import type { CooldownStarter } from "./cooldowns.ts";
import type { HostBreaker } from "./host-breaker.ts";
import type { Orders } from "./orders.ts";

/** Deadlines that differ by less than this count as the same one: they were converted between two clocks. */
const SAME_DEADLINE_US = 50_000;

/** The host or the resolver of a record, the record, and what this process knew of it before. */
export interface PeerRecord {
  readonly host?: string | undefined;
  readonly resolver?: string | undefined;
  readonly record: BreakerRecord;
  readonly known: BreakerRecord;
  /** This process, as the record names it. */
  readonly processId: string;
  /** When the record was read, by the clock of the store. A serial is a time of the store's clock, in microseconds. */
  readonly storeUs: number;
  /** Set if a failure of this process, added to those of its peers, has opened a circuit or started a cooldown. */
  readonly openedByCount?: CountedChange | undefined;
  /** Whether this process has written the state with this serial. Such a state is not applied. */
  readonly isOwn: (blocker: Blocker, serial: number) => boolean;
  /** When this process has given the order with this version itself, by its own clock; undefined if a peer has. */
  readonly ownOrderUs: (blocker: Blocker, version: number) => number | undefined;
}

/** The effects of a failure that this process has added to the failures of all processes in the record. */
export interface CountedChange {
  /** The circuits that it has opened. */
  readonly circuits: ReadonlySet<string>;
  /** Whether it has started a cooldown. */
  readonly hasStartedCooldown: boolean;
}

export interface RecordApplierDeps {
  readonly table: BreakerTable;
  readonly time: Time;
  readonly cooldownStarter: CooldownStarter;
  /** The number of the permit that was issued last. */
  readonly lastPermit: () => number;
  readonly endCooldown: (host: HostBreaker) => void;
  readonly orders: Orders;
}

/** Applies a record of the peers to the hosts and circuits of this process. Known parts of it have no effect. */
export class RecordApplier {
  readonly #deps: RecordApplierDeps;

  constructor(deps: RecordApplierDeps) {
    this.#deps = deps;
  }

  apply(peerRecord: PeerRecord): void {
    const { host, resolver } = peerRecord;
    if (host !== undefined) this.#applyHost(host, peerRecord);
    else if (resolver !== undefined)
      this.#applyCircuit(this.#deps.table.resolver(resolver), RESOLVER_CIRCUIT, peerRecord);
  }

  #applyHost(name: string, read: PeerRecord): void {
    const { record, known: before, openedByCount } = read;
    const { table, orders, time } = this.#deps;
    const local = table.find(name);
    const isReset = record.epoch !== before.epoch;
    if (isReset) {
      if (local === undefined) orders.endFormer(name, "host");
      else orders.reset(local, "peer", this.#orderedUs(local, record.epoch, read));
      orders.passToPartitions(name, lastClearing(record), record.epoch);
    }
    // After a reset, its cooldowns and circuits apply as if this process knew nothing of the host. A reset does not change
    // holds and limits, so they are still compared with the known record.
    const peerRecord = isReset ? { ...read, known: EMPTY_BREAKER_RECORD, isOwn: () => false } : read;
    const { known } = peerRecord;
    if (record.serverCooldown.serial !== known.serverCooldown.serial) {
      this.#applyCooldown(name, peerRecord, openedByCount?.hasStartedCooldown ? "counted" : "peer");
    }
    if (record.operatorCooldown.serial !== known.operatorCooldown.serial) this.#applyOrder(name, record);
    this.#applyHolds(name, record, before);
    this.#applyLimits(name, record, before);
    for (const role of Object.keys(record.circuits)) {
      if (!isRole(role)) continue;
      const { isClosed, order, counts, epoch = 0 } = circuitRecordOf(record, role);
      const isRoleCleared = epoch > record.epoch && epoch !== circuitRecordOf(before, role).epoch;
      if (isRoleCleared) orders.endFormer(name, "circuit", [role]);
      if (isRoleCleared) orders.passToPartitions(name, lastClearing(record, role), epoch);
      const hasOrder = order !== undefined && order.untilUs > time.monotonicUs();
      if (local?.circuits[role] === undefined && isClosed && !hasOrder && counts === undefined) continue;
      this.#applyCircuit(table.circuit(table.host(name), role), role, peerRecord);
    }
  }

  /**
   * The record holds the operator's last order. It replaces the order that this process has, even if it ends earlier.
   */
  #applyOrder(name: string, { operatorCooldown }: BreakerRecord): void {
    const { table, time, orders } = this.#deps;
    const nowUs = time.monotonicUs();
    const order = runningOrder(operatorCooldown, nowUs);
    const host = order === undefined ? table.find(name) : table.host(name);
    if (host !== undefined && isChanged(host.orderAt(nowUs), order)) orders.openHost(host, order, "peer");
  }

  /** A reset of the circuits releases no hold. */
  #applyHolds(name: string, { holds = {} }: BreakerRecord, { holds: known = {} }: BreakerRecord): void {
    const { table, time, orders } = this.#deps;
    const nowUs = time.monotonicUs();
    for (const [role, stored] of Object.entries(holds)) {
      if (!isRole(role) || stored.serial === known[role]?.serial) continue;
      const hold = runningOrder(stored, nowUs);
      const host = hold === undefined ? table.find(name) : table.host(name);
      if (host !== undefined && isChanged(host.holdAt(role, nowUs), hold)) orders.hold(host, [role], hold);
    }
  }

  /** As in `#applyHolds`, an order that this process already knows has no effect. */
  #applyLimits(name: string, { limits = {} }: BreakerRecord, { limits: known = {} }: BreakerRecord): void {
    const { table, time, orders } = this.#deps;
    const nowUs = time.monotonicUs();
    for (const [role, stored] of Object.entries(limits)) {
      if (!isLimitPart(role) || stored.serial === known[role]?.serial) continue;
      const limit = orderedLimit(stored, nowUs);
      const host = limit.untilUs === 0 ? table.find(name) : table.host(name);
      if (host !== undefined && isLimitChanged(host.limitAt(role, nowUs), limit)) orders.limit(host, [role], limit);
    }
  }

  /** When a serial was given, by the clock of this process. */
  #instantUs(serial: number, { storeUs }: PeerRecord): number {
    return this.#deps.time.monotonicUs() - (storeUs - serial);
  }

  /** When an order was given. For an order of a peer it is when the order reached the store, a little later. */
  #orderedUs(blocker: Blocker, version: number, peerRecord: PeerRecord): number {
    return peerRecord.ownOrderUs(blocker, version) ?? this.#instantUs(version, peerRecord);
  }

  #applyCooldown(name: string, peerRecord: PeerRecord, origin: ChangeOrigin): void {
    const { table, time, cooldownStarter, lastPermit, endCooldown } = this.#deps;
    const { untilUs, reason, serial } = peerRecord.record.serverCooldown;
    const nowUs = time.monotonicUs();
    const local = table.find(name);
    if (local !== undefined && peerRecord.isOwn(local, serial)) return;
    const current = local?.mayHaveCooldown ? local.cooldowns.requested(nowUs) : undefined;
    if (local !== undefined && current?.reason === reason && current.untilUs >= untilUs - SAME_DEADLINE_US) {
      // Another process has set nearly the same cooldown: the later deadline counts, without an event.
      if (untilUs > current.untilUs) local.cooldowns.set({ ...current, untilUs });
    } else if (untilUs > nowUs) {
      const ms = Math.min((untilUs - nowUs) / 1000, longestCooldownMs(table, name));
      const host = table.host(name);
      // A cooldown by the rolling window clears the failures of all processes (law B6).
      if (reason === "rolling-window") host.clearFailures();
      cooldownStarter.start(host, ms, reason as OpenReason, lastPermit(), origin);
    } else if (local?.mayHaveCooldown && current?.origin !== "local-only") {
      if (local.cooldowns.endRequested(nowUs, this.#instantUs(serial, peerRecord))) endCooldown(local);
    }
  }

  #applyCircuit(holder: CircuitHolder, name: string, peerRecord: PeerRecord): void {
    const { record, known, openedByCount } = peerRecord;
    const circuit = circuitRecordOf(record, name);
    const before = circuitRecordOf(known, name);
    const { orders, time } = this.#deps;
    const nowUs = time.monotonicUs();
    const isCleared = circuit.epoch !== undefined && circuit.epoch !== before.epoch;
    if (isCleared || circuit.order?.serial !== before.order?.serial) {
      const order = runningOrder(circuit.order, nowUs);
      if (isChanged(holder.orderAt(nowUs), order)) orders.openCircuit(holder, order, "peer");
    }
    if (isCleared) orders.closeCircuit(holder, "peer", this.#orderedUs(holder, circuit.epoch, peerRecord));
    this.#applyCounts(holder, circuit, before, peerRecord.processId);
    if (circuit.serial === before.serial || peerRecord.isOwn(holder, circuit.serial)) return;
    const isCounted = openedByCount?.circuits.has(name) === true;
    const current = holder.at(nowUs);
    const isOpened = current.kind !== "closed" && !current.isLocalOnly;
    // The failures that opened the circuit for all processes have already opened it in this one.
    if (isCounted && isOpened) return;
    // Another process has opened the circuit with nearly the same deadline.
    const isOpen = current.kind === "open" && isOpened && !circuit.isClosed;
    if (isOpen && Math.abs(current.untilUs - circuit.untilUs) <= SAME_DEADLINE_US) return;
    // Probes of peers have negative ids, which no local permit has. Their start is unknown.
    const probes = circuit.probes.map(({ expiresUs }, index) => ({ id: -1 - index, sentUs: nowUs, expiresUs }));
    const untilUs = Math.min(circuit.untilUs, nowUs + this.#deps.table.longestOpenUs(holder));
    holder.adopt({ ...circuit, untilUs, probes }, nowUs, isCounted ? "counted" : "peer");
  }

  #applyCounts(holder: CircuitHolder, { counts }: CircuitRecord, before: CircuitRecord, processId: string): void {
    holder.hasSharedFailures = counts !== undefined;
    if (before.counts !== undefined && counts?.sinceSerial !== before.counts.sinceSerial) holder.succeedElsewhere();
    const isThrottled = counts !== undefined && counts.throttleSerial > (before.counts?.throttleSerial ?? 0);
    if (!isThrottled || counts.throttledProcess === processId) return;
    const { host } = holder.name;
    const owner = host === undefined ? holder : this.#deps.table.cooldownOwnerOf(host);
    // The throttles of our requests in flight are part of the same event (law B10).
    owner?.countThrottle(this.#deps.lastPermit());
  }
}

/** An order of a record; undefined if it has ended. */
function runningOrder(order: BreakerCooldownRecord | undefined, nowUs: number): TimedOrder | undefined {
  if (order === undefined || order.untilUs <= nowUs) return undefined;
  return { untilUs: order.untilUs, reason: order.reason as OpenReason };
}

/** An order whose time is over, or whose rates this version cannot read, ends the one before. */
function orderedLimit(record: LimitOrderRecord, nowUs: number): OrderedLimit {
  const { isForced, reason, by, untilUs } = record;
  const ended = { rates: [], isForced: false, reason, by, untilUs: 0 };
  try {
    return untilUs <= nowUs ? ended : { ...limitsOf(record), isForced, reason, by, untilUs };
  } catch (error) {
    if (error instanceof RangeError) return ended;
    throw error;
  }
}

/** False if `next` is our own order: only its deadline differs slightly, by the conversion from the store's clock. */
function isLimitChanged(current: OrderedLimit | undefined, next: OrderedLimit): boolean {
  if (current === undefined || next.untilUs === 0) return (current === undefined) !== (next.untilUs === 0);
  if (Math.abs(current.untilUs - next.untilUs) > SAME_DEADLINE_US || current.isForced !== next.isForced) return true;
  const isSame = current.reason === next.reason && current.by === next.by;
  return (
    !isSame || current.maxConcurrent !== next.maxConcurrent || formatRates(current.rates) !== formatRates(next.rates)
  );
}

/** False if `next` is our own order: only its deadline differs slightly, by the conversion from the store's clock. */
function isChanged(current: TimedOrder | undefined, next: TimedOrder | undefined): boolean {
  if (current === undefined || next === undefined) return current !== next;
  return current.reason !== next.reason || Math.abs(current.untilUs - next.untilUs) > SAME_DEADLINE_US;
}

/** The longest cooldown by this process's policy. A stepped clock or a peer's policy does not extend it (law B8). */
function longestCooldownMs({ policies }: BreakerTable, host: string): number {
  return Math.max(policies.retryAfterCapMs(host), policies.rollingWindow.cooldownMs);
}

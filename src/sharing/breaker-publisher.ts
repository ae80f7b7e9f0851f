import type { Blocker, BreakerChange } from "../breaker/breaker-change.ts";
import type { BreakerTable } from "../breaker/breaker-table.ts";
import type { CircuitHolder } from "../breaker/circuit-holder.ts";
import type { Cooldown } from "../breaker/cooldowns.ts";
import type { HostBreaker } from "../breaker/host-breaker.ts";
import { giveOrder, isClearedSince, type OperatorOrder, passOrder } from "../core/breaker/breaker-order.ts";
import {
  type BreakerRecord,
  circuitRecordOf,
  closeCircuit,
  endServerCooldown,
  openCircuit,
  RESOLVER_CIRCUIT,
  setCooldown,
} from "../core/breaker/breaker-record.ts";
import type { Circuit } from "../core/breaker/circuit.ts";
import { EvictingMap } from "../core/evicting-map.ts";
import { type BreakerRecordName, hostRecordName, resolverRecordName } from "../stores/record-names.ts";
import type { Time } from "../time/time.ts";
import type { RecordStep } from "./peer-records.ts";

export type BreakerStep = RecordStep<BreakerRecord>;
/** Whether the store lacks what a step would write. */
type IsMissing = (...about: Parameters<BreakerStep>) => boolean;

export interface BreakerPublisherDeps {
  readonly table: BreakerTable;
  readonly time: Time;
  /** The record as this process has last applied it. */
  readonly known: (name: BreakerRecordName) => BreakerRecord;
  /** Resolves to false if the store could not be reached. */
  readonly write: (name: BreakerRecordName, step: BreakerStep) => Promise<boolean>;
  /** Notifies the peers of an order in this record. */
  readonly announce: (name: BreakerRecordName) => void;
}

/** An order to close or half-open that this process has given. */
interface OwnOrder {
  /** By the clock of this process. More exact than the version, which is the time when the order reached the store. */
  readonly givenUs: number;
  /** Undefined before it is written. */
  version?: number | undefined;
}

interface PendingOrder {
  readonly name: BreakerRecordName;
  /** Set if it is an order of this process to close or half-open. */
  readonly own?: OwnOrder | undefined;
  readonly order: OperatorOrder;
  readonly givenUs: number;
  /** Set if the order was given to the host of this partition: its version there, by the clock of the store. */
  readonly version?: number | undefined;
}

/** At most this many orders wait to be written, each for another host or circuit. Only a faulty program gives more. */
const PENDING_ORDERS_MAX = 1000;

/**
 * Writes the breaker state of this process to the records that its peers read. Newer state in the store is never
 * replaced (law B11): state is not written over an order that this process had not applied, and state that was written
 * before is written again only if the store has lost it.
 */
export class BreakerPublisher {
  readonly #deps: BreakerPublisherDeps;
  /** Since when the state of a host or circuit is not in the store, because the store was away when it changed. */
  readonly #unwrittenUs = new WeakMap<Blocker, number>();
  /** The serial of the last state of a host or circuit that this process has written. */
  readonly #writtenSerials = new WeakMap<Blocker, number>();
  /** The last order of this process to close or half-open a host or circuit. */
  readonly #ownOrders = new WeakMap<Blocker, OwnOrder>();
  readonly #pendingOrders = new EvictingMap<PendingOrder>(() => true, PENDING_ORDERS_MAX);

  constructor(deps: BreakerPublisherDeps) {
    this.#deps = deps;
  }

  openedCircuit(circuit: CircuitHolder, now: Circuit & { readonly kind: "open" }): void {
    this.#openCircuit(circuit, now, () => true);
  }

  /** The probe with this id has succeeded. */
  closedCircuit(circuit: CircuitHolder, probe: string): void {
    this.#write(circuit, (record, nowUs) => closeCircuit(record, circuitName(circuit), probe, nowUs));
  }

  startedCooldown({ blocker, untilUs, reason }: BreakerChange & { readonly kind: "cooldown" }): void {
    this.#setCooldown(blocker, { untilUs, reason, receivedUs: this.#deps.time.monotonicUs() }, () => true);
  }

  endedCooldown(blocker: Blocker): void {
    const { serial } = this.#deps.known(recordNameOf(blocker)).serverCooldown;
    this.#write(blocker, (record, nowUs) => endServerCooldown(record, serial, nowUs));
  }

  /** @param version of the order, if it was given to the host of this partition. @default a new one */
  ordered(blocker: Blocker, order: OperatorOrder, version?: number): void {
    const givenUs = this.#deps.time.monotonicUs();
    const isClearing = order.kind === "close" || order.kind === "half-open";
    const own = isClearing && version === undefined ? { givenUs } : undefined;
    if (own !== undefined) this.#ownOrders.set(blocker, own);
    this.#writeOrder({ name: recordNameOf(blocker), order, givenUs, version, own });
  }

  /** When this process has given the order with this version; undefined if it has not. */
  ownOrderUs(blocker: Blocker, version: number): number | undefined {
    const own = this.#ownOrders.get(blocker);
    return own?.version === version ? own.givenUs : undefined;
  }

  /** Whether this process has written the state with this serial. Its own state is then newer and more exact. */
  isOwn(blocker: Blocker, serial: number): boolean {
    return this.#writtenSerials.get(blocker) === serial;
  }

  /** After an outage: writes the orders that were given meanwhile, and the state that the store has missed or lost. */
  republish(): void {
    const { table, time } = this.#deps;
    const nowUs = time.monotonicUs();
    for (const pending of [...this.#pendingOrders.values()]) this.#writeOrder(pending);
    for (const host of table.hosts()) {
      if (host.mayHaveCooldown) this.#republishCooldowns(host, nowUs);
    }
    for (const circuit of table.circuits()) {
      const now = circuit.at(nowUs);
      if (now.kind !== "open" || now.isLocalOnly) continue;
      const serialOf = (record: BreakerRecord) => circuitRecordOf(record, circuitName(circuit)).serial;
      this.#openCircuit(circuit, now, this.#missing(circuit, serialOf, circuit.openedUs));
    }
  }

  /** The Retry-After that this process has received, and the longer one of a peer that the store has lost. */
  #republishCooldowns(host: HostBreaker, nowUs: number): void {
    const serialOf = ({ serverCooldown }: BreakerRecord) => serverCooldown.serial;
    const unwrittenUs = this.#unwrittenUs.get(host);
    const received = host.cooldowns.received(nowUs);
    if (received !== undefined) this.#setCooldown(host, received, this.#missing(host, serialOf, received.receivedUs));
    const requested = host.cooldowns.requested(nowUs);
    if (requested === undefined || requested === received || requested.origin === "local-only") return;
    const knownSerial = serialOf(this.#deps.known(recordNameOf(host)));
    // Written with its old serial, so that an order that was given since still ends it.
    if (requested.origin === "peer" || requested.origin === "counted")
      this.#setCooldown(host, requested, record => serialOf(record) < knownSerial, knownSerial);
    else this.#setCooldown(host, { ...requested, receivedUs: unwrittenUs }, this.#missing(host, serialOf, unwrittenUs));
  }

  /**
   * Whether the store lacks the state of a host or circuit: the store has lost it, or this process could not write it,
   * and nothing newer was written meanwhile. Serials follow the clock of the store.
   * @param madeUs when this process has made the state. If it has made several that could not be written, the last one.
   *   Undefined for a state of a peer, which only the store can have lost
   */
  #missing(blocker: Blocker, serialOf: (record: BreakerRecord) => number, madeUs: number | undefined): IsMissing {
    const knownSerial = serialOf(this.#deps.known(recordNameOf(blocker)));
    if (madeUs === undefined || !this.#unwrittenUs.has(blocker)) return record => serialOf(record) < knownSerial;
    return (record, _, storeUs) => serialOf(record) <= storeUs(madeUs);
  }

  #openCircuit(
    circuit: CircuitHolder,
    { untilUs, reopened }: Circuit & { readonly kind: "open" },
    isMissing: IsMissing,
  ): void {
    const name = circuitName(circuit);
    const { openedUs } = circuit;
    const step: BreakerStep = (record, nowUs, storeUs) => {
      const stored = circuitRecordOf(record, name);
      // Of two open times that are running the later end counts, whichever is newer.
      const isOpen = !stored.isClosed && stored.untilUs > nowUs;
      if (!isOpen && !isMissing(record, nowUs, storeUs)) return record;
      const sinceUs = openedUs === undefined ? nowUs : Math.min(nowUs, storeUs(openedUs));
      const next = openCircuit(record, name, { untilUs: storeUs(untilUs), reopened }, nowUs, sinceUs);
      if (next !== record) this.#writtenSerials.set(circuit, circuitRecordOf(next, name).serial);
      return next;
    };
    // A circuit that a peer has opened may be older than any order of this process.
    this.#write(circuit, step, openedUs ?? Number.NEGATIVE_INFINITY);
  }

  #setCooldown(
    host: Blocker,
    {
      untilUs,
      reason,
      receivedUs,
    }: Pick<Cooldown, "untilUs" | "reason"> & { readonly receivedUs?: number | undefined },
    isMissing: IsMissing,
    serial?: number,
  ): void {
    const sinceUs = receivedUs ?? this.#deps.time.monotonicUs();
    const isUnwritten = this.#unwrittenUs.has(host);
    const step: BreakerStep = (record, nowUs, storeUs) => {
      // Of two cooldowns the one with the later end counts, even if it is the older one. While this process could not
      // write, it may not know of the cooldown in the store, so that one also counts if it is over by now. A cooldown
      // that was ended early has the end 0.
      const isLater = serial === undefined && record.serverCooldown.untilUs > (isUnwritten ? 0 : nowUs);
      if (!isLater && !isMissing(record, nowUs, storeUs)) return record;
      const cooldown = { untilUs: storeUs(untilUs), reason };
      const next = setCooldown(record, "serverCooldown", cooldown, nowUs, serial ?? storeUs(sinceUs));
      if (next !== record) this.#writtenSerials.set(host, next.serverCooldown.serial);
      return next;
    };
    this.#write(host, step, receivedUs, reason === "retry-after" && receivedUs !== undefined);
  }

  /**
   * Writes state of this process, unless the store holds an order that the process had not applied when it changed.
   * @param changedUs when the state changed. @default now
   * @param isReceived the state is a Retry-After that was received then. It is written if the order is older
   */
  #write(blocker: Blocker, step: BreakerStep, changedUs = this.#deps.time.monotonicUs(), isReceived = false): void {
    const name = recordNameOf(blocker);
    const known = this.#deps.known(name);
    const circuit = "policy" in blocker ? circuitName(blocker) : undefined;
    const writing = this.#deps.write(name, (record, nowUs, storeUs) => {
      // Versions of orders follow the clock of the store.
      const isNewer = isReceived && record.epoch < nowUs - (this.#deps.time.monotonicUs() - changedUs);
      const isCleared = isClearedSince(record, known, circuit, this.#ownVersion(blocker, changedUs));
      return isCleared && !isNewer ? record : step(record, nowUs, storeUs);
    });
    void writing.then(isWritten => {
      if (isWritten) this.#unwrittenUs.delete(blocker);
      else this.#unwrittenUs.set(blocker, changedUs);
    });
  }

  /** The version of the last order of this process for the state of a host or circuit; 0 if the state is older. */
  #ownVersion(blocker: Blocker, changedUs: number): number {
    const { host } = "policy" in blocker ? blocker.name : {};
    const owners = [blocker, host === undefined ? undefined : this.#deps.table.get(host)];
    const versions = owners.flatMap(owner => {
      const own = owner && this.#ownOrders.get(owner);
      return own !== undefined && own.givenUs <= changedUs ? [own.version ?? 0] : [];
    });
    return Math.max(0, ...versions);
  }

  /** An order that could not be written is written when the store is back, unless a newer one was given meanwhile. */
  #writeOrder(pending: PendingOrder): void {
    const { name, order, givenUs, version, own } = pending;
    const ageUs = this.#deps.time.monotonicUs() - givenUs;
    const key = `${name} ${partOf(order)}`;
    let isNew = false;
    const step: BreakerStep = (record, nowUs) => {
      if (version !== undefined && !("roles" in order)) return passOrder(record, order, nowUs, version);
      if (!("durationUs" in order)) return giveOrder(record, order, nowUs, nowUs - ageUs);
      const durationUs = order.durationUs - ageUs;
      if (durationUs > 0) return giveOrder(record, { ...order, durationUs }, nowUs, nowUs - ageUs);
      // The order has ended meanwhile. The order that it had replaced must not come back.
      return order.kind === "set-limit"
        ? giveOrder(record, { ...order, kind: "reset-limit" }, nowUs, nowUs - ageUs)
        : record;
    };
    const writing = this.#deps.write(name, (record, nowUs, storeUs) => {
      const next = step(record, nowUs, storeUs);
      isNew = next !== record;
      if (own !== undefined) own.version = isNew ? lastVersion(next, order) : undefined;
      return next;
    });
    void writing.then(isWritten => {
      if (!isWritten) {
        this.#pendingOrders.add(key, pending);
        return;
      }
      this.#pendingOrders.delete(key);
      if (isNew) this.#deps.announce(name);
    });
  }
}

/** The version of the last order to close or half-open in the record. */
function lastVersion(record: BreakerRecord, order: OperatorOrder): number | undefined {
  if ("roles" in order) return undefined;
  return order.circuit === undefined ? record.epoch : circuitRecordOf(record, order.circuit).epoch;
}

/** The part of a record that an order is for: of two orders for the same part the newer one counts. */
function partOf(order: OperatorOrder): string {
  if (!("roles" in order)) return order.circuit ?? "*";
  const isHold = order.kind === "hold" || order.kind === "release";
  return `${isHold ? "hold" : "limit"} ${order.roles}`;
}

export function recordNameOf(blocker: Blocker): BreakerRecordName {
  if ("circuits" in blocker) return hostRecordName(blocker.name);
  const { host = "", resolver } = blocker.name;
  return resolver === undefined ? hostRecordName(host) : resolverRecordName(resolver);
}

/** The name of a circuit in the record of its host or resolver. */
export function circuitName({ name: { role } }: CircuitHolder): string {
  return role ?? RESOLVER_CIRCUIT;
}

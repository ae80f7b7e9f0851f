import type { Blocker, BreakerChange, ProbePermissions } from "../breaker/breaker-change.ts";
import type { Breakers } from "../breaker/breakers.ts";
import type { CircuitHolder } from "../breaker/circuit-holder.ts";
import type { Denial } from "../breaker/denial.ts";
import {
  type BreakerRecord,
  breakerRecordExpiryUs,
  circuitRecordOf,
  EMPTY_BREAKER_RECORD,
  leaseProbe,
  returnProbeLease,
} from "../core/breaker/breaker-record.ts";
import { restoreLost } from "../core/breaker/lost-states.ts";
import type { StoreError } from "../errors.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import { serviceName } from "../policy/service-name.ts";
import { announceOrder } from "../stores/order-log.ts";
import {
  type BreakerRecordName,
  hostOfRecord,
  hostRecordName,
  resolverOfRecord,
  resolverRecordName,
} from "../stores/record-names.ts";
import type { Store } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";
import { setUnreferencedTimer } from "../time/unreferenced-timer.ts";
import { BreakerPublisher, type BreakerStep, circuitName, recordNameOf } from "./breaker-publisher.ts";
import { FailurePublisher } from "./failure-publisher.ts";
import type { PeerChange } from "./peer-change.ts";
import { type ApplyRecord, PeerRecords } from "./peer-records.ts";
import { ProbeLeases, type ProbePermission } from "./probe-leases.ts";

/** A probe permission that is not used within this time is returned. */
const UNUSED_MS = 1000;
/** How long a caller waits before it asks again. Less than UNUSED_MS, so that a granted permission is not returned before. */
const PENDING_US = 500_000;
/** After a refusal the store is not asked for a probe again for this long. */
const REFUSED_US = 50_000;
/** How often records are re-read while requests wait for a circuit or cooldown, which another process may end early. */
const POLL_MS = 500;
/** A store that is away is not asked again for this long, ... */
const RETRY_US = 1_000_000;
/** ... or for this many times as long as the last attempt took: requests wait for each attempt. */
const RETRY_PER_ATTEMPT = 4;

/** The parts of a call that decide which records it needs. */
type RecordedCall = Pick<EntryRequest, "host" | "path" | "partition" | "resolver" | "service">;

/**
 * Synchronises the breakers of this process with the records of its peers. It writes local changes to the store, reads
 * a record before a request is granted or refused by it, applies what it reads, and leases probes. When that changes
 * something for waiting requests, it calls `wake`, and `takeChanges` returns the changes.
 */
export class BreakerSync implements ProbePermissions {
  readonly #store: Store;
  readonly #records: PeerRecords<BreakerRecord>;
  readonly #publisher: BreakerPublisher;
  readonly #failures: FailurePublisher;
  readonly #probes = new ProbeLeases();
  readonly #breakers: Breakers;
  readonly #time: Time;
  readonly #wake: () => void;
  readonly #changes: PeerChange[] = [];
  readonly #reading = new Map<BreakerRecordName, Promise<boolean>>();
  /** Role budgets whose first request waits for a read. */
  readonly #refreshing = new Set<RoleBudget>();
  readonly #probeRequests = new Set<Promise<void>>();
  #probesRequested = 0;
  #pollTimer: Timer | undefined;
  #isPollDue = false;
  #isAway = false;
  #retryUs = 0;

  constructor(store: Store, breakers: Breakers, time: Time, wake: () => void) {
    this.#store = store;
    this.#records = new PeerRecords(store, time, {
      empty: EMPTY_BREAKER_RECORD,
      expiryUs: breakerRecordExpiryUs,
      restore: restoreLost,
    });
    this.#breakers = breakers;
    this.#time = time;
    this.#wake = wake;
    this.#failures = new FailurePublisher({
      processId: store.processId,
      table: breakers.table,
      time,
      known: name => this.#records.known(name),
      write: (name, step) => this.#write(name, step),
      isAway: () => this.#isInRetryPause,
    });
    this.#publisher = new BreakerPublisher({
      table: breakers.table,
      time,
      known: name => this.#records.known(name),
      write: (name, step) => this.#write(name, step),
      // Peers that are not notified read the order before their next request.
      announce: name => void announceOrder(store, name).catch(() => undefined),
    });
  }

  isFresh(call: RecordedCall): boolean {
    return this.#isInRetryPause || this.#recordNamesOf(call).every(name => this.#records.isFresh(name));
  }

  /** Whether the records for this role budget are being read. */
  isRefreshing(roleBudget: RoleBudget): boolean {
    return this.#refreshing.has(roleBudget);
  }

  /** As `isFresh`, for a request whose turn it is. If false, the records are being read; then a `ready` change follows. */
  ensureFresh(call: EntryRequest, roleBudget: RoleBudget): boolean {
    if (this.isFresh(call)) {
      this.refreshAhead(call);
      return true;
    }
    // One read per role budget, however often its first request is tried meanwhile.
    if (this.#refreshing.has(roleBudget)) return false;
    this.#refreshing.add(roleBudget);
    void this.#refresh(call).then(() => {
      this.#refreshing.delete(roleBudget);
      this.#report({ kind: "ready", roleBudget });
    });
    return false;
  }

  /** How early the records of a request should be read before it is sent; 0 if the store answers quickly. */
  get readAheadUs(): number {
    return this.#records.readAheadUs;
  }

  /** If the store is slow, reads the records of a request that will be sent soon. The request does not wait for this. */
  refreshAhead(call: EntryRequest): void {
    if (this.#isInRetryPause) return;
    for (const name of this.#recordNamesOf(call)) if (this.#records.isAgeing(name)) void this.#read(name);
  }

  /**
   * The read that must end before the request is refused, or granted in shadow mode; undefined if the records are
   * fresh. If the denial waits for the peers' permission to probe, it is their reply.
   */
  refreshBefore(call: RecordedCall, denial: Denial | undefined): Promise<void> | undefined {
    if (denial?.isProbePending && "policy" in denial.blocker) {
      const permission = this.#probes.permissionOf(denial.blocker);
      if (permission?.kind === "requested") return permission.reply;
    }
    return this.isFresh(call) ? undefined : this.#refresh(call);
  }

  /**
   * If there is no permission to probe, the peers are asked, and an `unblocked` change follows their reply. A probe that
   * takes longer than `leaseUs` loses its lease: if its process has died, another process may probe after this time.
   */
  mayProbe(
    circuit: CircuitHolder,
    nowUs: number,
    leaseUs: number,
  ): true | { readonly untilUs: number; readonly isPending: boolean } {
    // A circuit that is open only in this process needs no permission: the peers do not probe it.
    if (
      circuit.isLocalOnly &&
      circuitRecordOf(this.#records.known(recordNameOf(circuit)), circuitName(circuit)).isClosed
    )
      return true;
    const permission = this.#probes.permissionOf(circuit);
    if (permission?.kind === "granted") {
      if (this.#isLeased(circuit, permission)) return true;
      permission.returnTimer.cancel();
      this.#probes.setPermission(circuit, undefined);
    }
    if (permission?.kind === "refused" && permission.untilUs > nowUs)
      return { untilUs: permission.untilUs, isPending: false };
    if (permission?.kind !== "requested") {
      const reply = this.#requestProbe(circuit, leaseUs).finally(() => this.#probeRequests.delete(reply));
      this.#probeRequests.add(reply);
      this.#probes.setPermission(circuit, { kind: "requested", reply });
    }
    return { untilUs: nowUs + PENDING_US, isPending: true };
  }

  useProbe(circuit: CircuitHolder, permit: number): void {
    this.#probes.use(circuit, permit);
  }

  /** Writes the changes that this process made itself, and returns the leases of probes that have ended. */
  publish(changes: readonly BreakerChange[]): void {
    for (const change of changes) {
      const { origin, kind, blocker } = change;
      if (kind === "circuit") this.#publishCircuit(change);
      else if (origin !== "local") continue;
      else if (kind === "failure") this.#failures.failed(change.blocker, change.failure, change.policy);
      else if (kind === "recent-failure") this.#failures.recentlyFailed(change.blocker, change.isUnreached);
      else if (kind === "success") this.#failures.succeeded(change.blocker);
      else if (kind === "cooldown") this.#publisher.startedCooldown(change);
      else if (kind === "cooldown-ended") this.#publisher.endedCooldown(blocker);
      else if ((kind === "order" || kind === "hold" || kind === "limit") && change.order !== undefined)
        this.#publisher.ordered(blocker, change.order, kind === "order" ? change.version : undefined);
    }
  }

  /**
   * Re-reads the records of the circuits and cooldowns that requests wait for, every POLL_MS. `wake` is called when
   * `poll` is to be called again.
   */
  poll(blockers: Iterable<Blocker>): void {
    if (this.#pollTimer !== undefined) return;
    this.#pollTimer = this.#time.setTimer(POLL_MS, () => {
      this.#pollTimer = undefined;
      this.#isPollDue = true;
      this.#wake();
      this.#isPollDue = false;
    });
    if (!this.#isPollDue || this.#isInRetryPause) return;
    for (const name of new Set(Array.from(blockers, recordNameOf))) void this.#read(name);
  }

  /** Reads these records, whether they are fresh or not, and applies them. False if the store could not be reached. */
  async readAll(names: readonly BreakerRecordName[]): Promise<boolean> {
    const reached = await Promise.all(names.map(name => this.#read(name)));
    return reached.every(isReached => isReached);
  }

  /**
   * The store is back, or has lost its data: the orders, circuits and cooldowns that this process knows are compared with
   * it at once, and written again if they are missing. Otherwise the store would lack them until the next request to
   * their host, and a process that starts meanwhile would not know them.
   */
  restoreLost(): void {
    for (const name of this.#records.restorable()) void this.#read(name as BreakerRecordName);
  }

  takeChanges(): readonly PeerChange[] {
    return this.#changes.splice(0);
  }

  /** Resolves when pending records are written, and unused permissions to probe are returned. */
  async close(): Promise<void> {
    this.#pollTimer?.cancel();
    await Promise.all(this.#probeRequests);
    for (const { circuit, id } of this.#probes.takeUnused()) this.#returnProbe(circuit, id);
    await this.#records.flush();
  }

  /** The store has answered in another part of the program. */
  reached(): void {
    this.#retryUs = 0;
  }

  get #isInRetryPause(): boolean {
    return this.#isAway && this.#time.monotonicUs() < this.#retryUs;
  }

  #publishCircuit({ blocker: circuit, old, now, origin }: BreakerChange & { readonly kind: "circuit" }): void {
    if (origin === "local" && now.kind === "open" && !now.isLocalOnly) this.#publisher.openedCircuit(circuit, now);
    const probe = this.#probes.oldestOf(circuit);
    if (origin === "local" && old.kind === "half-open" && now.kind === "closed" && probe !== undefined)
      this.#publisher.closedCircuit(circuit, probe);
    for (const id of this.#probes.takeEnded(circuit, now)) this.#returnProbe(circuit, id);
  }

  /** Whether the store still has the lease: it ends when a process opens the circuit again, or an operator closes it. */
  #isLeased(circuit: CircuitHolder, { id, serial }: ProbePermission & { readonly kind: "granted" }): boolean {
    const record = circuitRecordOf(this.#records.known(recordNameOf(circuit)), circuitName(circuit));
    return record.serial <= serial || record.probes.some(probe => probe.id === id);
  }

  async #requestProbe(circuit: CircuitHolder, leaseUs: number): Promise<void> {
    this.#probesRequested += 1;
    const id = `${this.#ownProbes}${this.#probesRequested}`;
    const { trialCalls } = circuit.policy;
    const longestOpenUs = this.#breakers.table.longestOpenUs(circuit);
    let isRefused = false;
    let serial = Number.POSITIVE_INFINITY;
    // If the store is away, the probe may be sent. It may also be sent if the store has lost the change that opened the
    // circuit: the record then says that the circuit is closed, so that the peers send all their calls.
    await this.#write(recordNameOf(circuit), (record, nowUs) => {
      const probe = { id, expiresUs: nowUs + leaseUs };
      const next = leaseProbe(record, circuitName(circuit), probe, trialCalls, nowUs, longestOpenUs);
      const leased = circuitRecordOf(next, circuitName(circuit));
      isRefused = next === record && !leased.isClosed;
      serial = leased.serial;
      return next;
    });
    this.#probes.setPermission(
      circuit,
      isRefused
        ? { kind: "refused", untilUs: this.#time.monotonicUs() + REFUSED_US }
        : { kind: "granted", id, serial, returnTimer: this.#returnUnused(circuit, id) },
    );
    this.#report({ kind: "unblocked", blocker: circuit });
  }

  #returnUnused(circuit: CircuitHolder, id: string): Timer {
    return setUnreferencedTimer(this.#time, UNUSED_MS, () => {
      this.#probes.setPermission(circuit, undefined);
      this.#returnProbe(circuit, id);
    });
  }

  #returnProbe(circuit: CircuitHolder, id: string): void {
    this.#write(recordNameOf(circuit), (record, nowUs) => returnProbeLease(record, circuitName(circuit), id, nowUs));
  }

  async #refresh(call: RecordedCall): Promise<void> {
    await Promise.all(this.#recordNamesOf(call).map(name => this.#read(name)));
  }

  /**
   * The records of everything that may deny the call: its host, its service, its partition, its resolver. If the call
   * names a service, the record of that service has the rates that an operator has ordered for it.
   */
  #recordNamesOf(call: RecordedCall): readonly BreakerRecordName[] {
    const names = this.#breakers.table.ownerNamesOf(call).map(hostRecordName);
    if (call.service !== undefined) names.push(hostRecordName(serviceName(call.service)));
    return call.resolver === undefined ? names : [...names, resolverRecordName(call.resolver)];
  }

  #read(name: BreakerRecordName): Promise<boolean> {
    const known = this.#reading.get(name);
    if (known !== undefined) return known;
    const reading = this.#reach(this.#records.read(name, this.#applyTo(name))).finally(() =>
      this.#reading.delete(name),
    );
    this.#reading.set(name, reading);
    return reading;
  }

  #write(name: BreakerRecordName, step: BreakerStep): Promise<boolean> {
    return this.#reach(this.#records.write(name, step, this.#applyTo(name)));
  }

  #applyTo(name: BreakerRecordName): ApplyRecord<BreakerRecord> {
    const names = { host: hostOfRecord(name), resolver: resolverOfRecord(name) };
    return (stored, known, storeUs) => {
      const record = withoutProbes(stored, id => id.startsWith(this.#ownProbes));
      this.#breakers.applyRecord({
        ...names,
        record,
        known,
        processId: this.#store.processId,
        storeUs,
        openedByCount: this.#failures.takeCounted(name),
        isOwn: (blocker, serial) => this.#publisher.isOwn(blocker, serial),
        ownOrderUs: (blocker, version) => this.#publisher.ownOrderUs(blocker, version),
      });
    };
  }

  /** Never rejects: a failure of the store becomes a change, and the result is false. */
  async #reach(access: Promise<void>): Promise<boolean> {
    const startedUs = this.#time.monotonicUs();
    try {
      await access;
      this.#reached();
      return true;
    } catch (error) {
      this.#failed(error as StoreError, this.#time.monotonicUs() - startedUs);
      return false;
    }
  }

  /** The ids of our own probes start with this. */
  get #ownProbes(): string {
    return `${this.#store.processId} `;
  }

  #failed(error: StoreError, tookUs: number): void {
    this.#retryUs = this.#time.monotonicUs() + Math.max(RETRY_US, RETRY_PER_ATTEMPT * tookUs);
    if (this.#isAway) return;
    this.#isAway = true;
    this.#report({ kind: "store", shares: "breakers", away: { processes: 1, error } });
  }

  #reached(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#report({ kind: "store", shares: "breakers", away: undefined });
    this.#publisher.republish();
    this.restoreLost();
  }

  #report(change: PeerChange): void {
    this.#changes.push(change);
    this.#wake();
  }
}

/** The record without the probes of this process, which it knows better than the store does. */
function withoutProbes(record: BreakerRecord, isDropped: (id: string) => boolean): BreakerRecord {
  const circuits = Object.entries(record.circuits).map(([name, circuit]) => [
    name,
    { ...circuit, probes: circuit.probes.filter(({ id }) => !isDropped(id)) },
  ]);
  return { ...record, circuits: Object.fromEntries(circuits) };
}

import type { BreakerTable } from "../breaker/breaker-table.ts";
import type { CircuitHolder } from "../breaker/circuit-holder.ts";
import type { HostBreaker } from "../breaker/host-breaker.ts";
import type { CountedChange } from "../breaker/record-applier.ts";
import { isClearedSince } from "../core/breaker/breaker-order.ts";
import { type BreakerRecord, circuitRecordOf } from "../core/breaker/breaker-record.ts";
import type { CircuitPolicy, FailureKind } from "../core/breaker/circuit.ts";
import {
  countFailure,
  countRecentFailure,
  resetFailureCounts,
  withoutUnreached,
} from "../core/breaker/failure-counts.ts";
import type { BreakerRecordName } from "../stores/record-names.ts";
import type { Time } from "../time/time.ts";
import { type BreakerStep, circuitName, recordNameOf } from "./breaker-publisher.ts";

export interface FailurePublisherDeps {
  /** This process, as its peers know it. */
  readonly processId: string;
  readonly table: BreakerTable;
  readonly time: Time;
  /** The record as this process has last applied it. */
  readonly known: (name: BreakerRecordName) => BreakerRecord;
  /** Resolves to false if the store could not be reached. */
  readonly write: (name: BreakerRecordName, step: BreakerStep) => Promise<boolean>;
  /** Whether the store is away and must not be asked yet. Then only this process counts its failures. */
  readonly isAway: () => boolean;
}

/** At most this many failures of one circuit, or of the rolling window, are written together. */
const FAILURES_MAX = 100;
/** The key of the rolling window in a batch. A circuit has its name as key. */
const WINDOW = "rolling window";

/** Results of calls that are written together, in their order. */
class ResultBatch {
  readonly #steps: BreakerStep[] = [];
  /** The failures by circuit, and of the rolling window. */
  readonly #failures = new Map<string, number>();
  /** Circuits whose last result in this batch is a success: a further one would change nothing. */
  readonly #reset = new Set<string>();

  get steps(): readonly BreakerStep[] {
    return this.#steps;
  }

  /** Failures beyond FAILURES_MAX are left out: this process counts them itself, and opens its own circuit. */
  addFailure(of: string, step: BreakerStep): void {
    const failures = this.#failures.get(of) ?? 0;
    if (failures >= FAILURES_MAX) return;
    this.#failures.set(of, failures + 1);
    this.#reset.delete(of);
    this.#steps.push(step);
  }

  /** A success is never left out: the peers would count failures from before it. */
  addSuccess(of: string, step: BreakerStep): void {
    if (this.#reset.has(of)) return;
    this.#reset.add(of);
    this.#steps.push(step);
  }
}

/**
 * Adds the failures of this process to those of its peers, in the record of the host or resolver. The write that reaches
 * `fail_max`, or the threshold of the rolling window, opens the circuit for all. A success is written only if failures
 * are counted. Results that come while a write of the same record is waiting are part of that write. A failure counts at
 * the time when it happened, however late the store applies it.
 */
export class FailurePublisher {
  readonly #deps: FailurePublisherDeps;
  /** Results that wait for the write of their record. */
  readonly #batches = new Map<BreakerRecordName, ResultBatch>();
  /** Circuits and cooldowns that a write of this process has opened or started, and that are not applied here yet. */
  readonly #counted = new Map<BreakerRecordName, CountedChange & { readonly batch: ResultBatch }>();

  constructor(deps: FailurePublisherDeps) {
    this.#deps = deps;
  }

  failed(circuit: CircuitHolder, failure: FailureKind, policy: Pick<CircuitPolicy, "failMax" | "resetUs">): void {
    const { processId } = this.#deps;
    const [name, role] = [recordNameOf(circuit), circuitName(circuit)];
    const known = this.#deps.known(name);
    const throttleSerial = circuitRecordOf(known, role).counts?.throttleSerial ?? 0;
    const failedUs = this.#deps.time.monotonicUs();
    const step: BreakerStep = (record, nowUs, storeUs) =>
      isClearedSince(record, known, role)
        ? record
        : countFailure(record, role, { ...failure, processId }, throttleSerial, policy, nowUs, storeUs(failedUs));
    this.#add(name, batch => batch.addFailure(role, step));
  }

  recentlyFailed(host: HostBreaker, isUnreached: boolean): void {
    const { processId, table, time } = this.#deps;
    const name = recordNameOf(host);
    const known = this.#deps.known(name);
    const failedUs = time.monotonicUs();
    const failure = { processId, isUnreached };
    const step: BreakerStep = (record, nowUs, storeUs) =>
      isClearedSince(record, known)
        ? record
        : countRecentFailure(record, failure, table.policies.rollingWindow, nowUs, storeUs(failedUs));
    this.#add(name, batch => batch.addFailure(WINDOW, step));
  }

  succeeded(circuit: CircuitHolder): void {
    const [name, role] = [recordNameOf(circuit), circuitName(circuit)];
    this.#add(name, batch => batch.addSuccess(role, record => resetFailureCounts(record, role)));
    const { host } = circuit.name;
    const owner = host === undefined ? undefined : this.#deps.table.cooldownOwnerOf(host);
    if (owner === undefined || recordNameOf(owner) === name) return;
    const known = this.#deps.known(recordNameOf(owner));
    if (withoutUnreached(known) !== known)
      this.#add(recordNameOf(owner), batch => batch.addSuccess(WINDOW, withoutUnreached));
  }

  /** The circuits that a write of this process has opened, and whether it has started a cooldown. Returned once. */
  takeCounted(name: BreakerRecordName): CountedChange | undefined {
    const counted = this.#counted.get(name);
    this.#counted.delete(name);
    return counted;
  }

  /** Adds a result to the batch that waits for its write, or to a new one. */
  #add(name: BreakerRecordName, addTo: (batch: ResultBatch) => void): void {
    const waiting = this.#batches.get(name);
    if (waiting !== undefined) {
      addTo(waiting);
      return;
    }
    if (this.#deps.isAway()) return;
    const batch = new ResultBatch();
    addTo(batch);
    this.#batches.set(name, batch);
    const end = () => this.#batches.get(name) === batch && this.#batches.delete(name);
    const writing = this.#deps.write(name, (record, nowUs, storeUs) => {
      end();
      const next = batch.steps.reduce((before, each) => each(before, nowUs, storeUs), record);
      this.#recordOpened(name, batch, record, next);
      return next;
    });
    void writing.then(isWritten => {
      end();
      if (!isWritten) this.#forgetOpened(name, batch);
    });
  }

  #recordOpened(name: BreakerRecordName, batch: ResultBatch, before: BreakerRecord, now: BreakerRecord): void {
    // A store calls a step again when another process has changed the record meanwhile.
    this.#forgetOpened(name, batch);
    const opened = Object.keys(now.circuits).filter(
      role => circuitRecordOf(before, role).isClosed && !circuitRecordOf(now, role).isClosed,
    );
    const hasStartedCooldown = now.serverCooldown.serial !== before.serverCooldown.serial;
    if (opened.length > 0 || hasStartedCooldown)
      this.#counted.set(name, { circuits: new Set(opened), hasStartedCooldown, batch });
  }

  #forgetOpened(name: BreakerRecordName, batch: ResultBatch): void {
    if (this.#counted.get(name)?.batch === batch) this.#counted.delete(name);
  }
}

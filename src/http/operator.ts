import type { CircuitState } from "../breaker/breaker-events.ts";
import { operatorReason } from "../breaker/operator-reason.ts";
import {
  type BreakerRecord,
  breakerRecordExpiryUs,
  circuitRecordOf,
  clearBreakerRecord,
  EMPTY_BREAKER_RECORD,
  runningCooldown,
  setCooldown,
} from "../core/breaker/breaker-record.ts";
import { canonicalHost } from "../core/text/host.ts";
import { PROCESS_PREFIX, type ProcessRecord } from "../stores/process-record.ts";
import { HOST_RECORDS, hostRecordName, RESOLVER_RECORDS } from "../stores/record-names.ts";
import type { Store, StoreRecord } from "../stores/store.ts";
import type { PublishedStatus } from "./status-publisher.ts";

export interface SharedCircuitStatus {
  /** A role; empty for a resolver. */
  readonly name: string;
  readonly state: CircuitState;
  readonly remainingMs: number;
  readonly probes: number;
}

/** A host, or a resolver, as all processes together know it. */
export interface SharedBreakerStatus {
  readonly kind: "host" | "resolver";
  readonly name: string;
  readonly state: CircuitState;
  /** Why it is open; undefined while it is not. */
  readonly reason: string | undefined;
  /** Until it may be called again, as far as anybody knows. */
  readonly remainingMs: number;
  /** How much of that is a cooldown's, which shuts every role. */
  readonly cooldownMs: number;
  readonly circuits: readonly SharedCircuitStatus[];
}

export type RunningProcess = ProcessRecord<PublishedStatus> & { readonly processId: string };

/** What an operator does from outside, through the store that running processes share (law S6). */
export class Operator {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async hosts(): Promise<readonly SharedBreakerStatus[]> {
    const lists = await Promise.all([
      this.#store.list<BreakerRecord>(HOST_RECORDS),
      this.#store.list<BreakerRecord>(RESOLVER_RECORDS),
    ]);
    return lists.flat().map(({ name, ...seen }) => sharedStatusOf(name, seen));
  }

  async host(host: string): Promise<SharedBreakerStatus> {
    const name = hostRecordName(canonicalHost(host));
    return sharedStatusOf(name, await this.#store.read<BreakerRecord>(name));
  }

  async processes(): Promise<readonly RunningProcess[]> {
    const found = await this.#store.list<ProcessRecord<PublishedStatus>>(PROCESS_PREFIX);
    return found.flatMap(({ name, record }) =>
      record === undefined ? [] : [{ ...record, processId: name.slice(PROCESS_PREFIX.length) }],
    );
  }

  /** Shuts a host for all processes. Only time or an operator opens it again. */
  async open(host: string, seconds: number, reason: string): Promise<SharedBreakerStatus> {
    if (!(seconds > 0)) throw new RangeError(`seconds must be more than 0, not ${seconds}`);
    return this.#change(host, (known, nowUs) =>
      setCooldown(known, "operatorCooldown", { untilUs: nowUs + seconds * 1e6, reason: operatorReason(reason) }, nowUs),
    );
  }

  /** Opens it again: cooldowns, circuits and failures are forgotten, in every process. */
  async close(host: string): Promise<SharedBreakerStatus> {
    return this.#change(host, clearBreakerRecord);
  }

  #change(host: string, step: (known: BreakerRecord, nowUs: number) => BreakerRecord): Promise<SharedBreakerStatus> {
    const name = hostRecordName(canonicalHost(host));
    return this.#store.change<BreakerRecord, SharedBreakerStatus>(name, ({ record = EMPTY_BREAKER_RECORD, nowUs }) => {
      const next = step(record, nowUs);
      return {
        record: { next, keepUntilUs: breakerRecordExpiryUs(next, nowUs) },
        result: sharedStatusOf(name, { record: next, nowUs }),
      };
    });
  }
}

function sharedStatusOf(
  subject: string,
  { record: host = EMPTY_BREAKER_RECORD, nowUs }: StoreRecord<BreakerRecord>,
): SharedBreakerStatus {
  const [kind = "", ...rest] = subject.split(" ");
  const cooldown = runningCooldown(host, nowUs);
  const circuits = Object.keys(host.circuits).map(name => circuitStatusOf(host, name, nowUs));
  const worst = circuits.find(({ state }) => state === "open") ?? circuits.find(({ state }) => state === "half_open");
  const cooledMs = cooldown === undefined ? 0 : Math.ceil((cooldown.untilUs - nowUs) / 1000);
  return {
    kind: kind as SharedBreakerStatus["kind"],
    name: rest.join(" "),
    state: cooldown === undefined ? (worst?.state ?? "closed") : "open",
    reason: cooldown?.reason ?? (worst === undefined ? undefined : "failures"),
    remainingMs: Math.max(cooledMs, ...circuits.map(({ remainingMs }) => remainingMs)),
    cooldownMs: cooledMs,
    circuits,
  };
}

function circuitStatusOf(host: BreakerRecord, name: string, nowUs: number): SharedCircuitStatus {
  const { isClosed, untilUs, probes } = circuitRecordOf(host, name);
  const leftMs = Math.max(0, Math.ceil((untilUs - nowUs) / 1000));
  const running = probes.filter(({ expiresUs }) => expiresUs > nowUs);
  return {
    name,
    state: isClosed ? "closed" : leftMs > 0 ? "open" : "half_open",
    remainingMs: isClosed ? 0 : leftMs,
    probes: running.length,
  };
}

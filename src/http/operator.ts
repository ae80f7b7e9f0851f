import { operatorReason } from "../breaker/cooldowns.ts";
import { type SharedBreakerStatus, sharedStatusOf } from "../breaker/host-status.ts";
import {
  type BreakerRecord,
  breakerRecordExpiryUs,
  clearBreakerRecord,
  EMPTY_BREAKER_RECORD,
  setCooldown,
} from "../core/breaker/breaker-record.ts";
import { canonicalUnit } from "../policy/service-name.ts";
import { PROCESS_PREFIX, type ProcessRecord } from "../stores/process-record.ts";
import { HOST_RECORDS, hostRecordName, RESOLVER_RECORDS } from "../stores/record-names.ts";
import type { Store } from "../stores/store.ts";
import type { PublishedStatus } from "./status-publisher.ts";

/** A process that has written its status to the store within the last minute. */
export type RunningProcess = ProcessRecord<PublishedStatus> & { readonly processId: string };

/** The commands of an operator. They act on running processes through the store that these share (law S6). */
export class Operator {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Every host, service and resolver that has a record in the store. */
  async hosts(): Promise<readonly SharedBreakerStatus[]> {
    const lists = await Promise.all([
      this.#store.list<BreakerRecord>(HOST_RECORDS),
      this.#store.list<BreakerRecord>(RESOLVER_RECORDS),
    ]);
    return lists.flat().map(({ name, record, nowUs }) => sharedStatusOf(name, record, nowUs));
  }

  /** @param host a host, or `service <name>` */
  async host(host: string): Promise<SharedBreakerStatus> {
    const name = hostRecordName(canonicalUnit(host));
    const { record, nowUs } = await this.#store.read<BreakerRecord>(name);
    return sharedStatusOf(name, record, nowUs);
  }

  async processes(): Promise<readonly RunningProcess[]> {
    const found = await this.#store.list<ProcessRecord<PublishedStatus>>(PROCESS_PREFIX);
    return found.flatMap(({ name, record }) =>
      record === undefined ? [] : [{ ...record, processId: name.slice(PROCESS_PREFIX.length) }],
    );
  }

  /** Forces the circuit of the host or service open in all processes, until `seconds` have passed or an operator closes it. */
  async open(host: string, seconds: number, reason: string): Promise<SharedBreakerStatus> {
    if (!(seconds > 0)) throw new RangeError(`seconds must be above 0, not ${seconds}`);
    return this.#change(host, (current, nowUs) =>
      setCooldown(
        current,
        "operatorCooldown",
        { untilUs: nowUs + seconds * 1e6, reason: operatorReason(reason) },
        nowUs,
      ),
    );
  }

  /** Closes the circuits of the host or service, ends its cooldowns and resets its failures, in all processes. */
  async close(host: string): Promise<SharedBreakerStatus> {
    return this.#change(host, clearBreakerRecord);
  }

  #change(host: string, step: (current: BreakerRecord, nowUs: number) => BreakerRecord): Promise<SharedBreakerStatus> {
    const name = hostRecordName(canonicalUnit(host));
    return this.#store.change<BreakerRecord, SharedBreakerStatus>(name, ({ record = EMPTY_BREAKER_RECORD, nowUs }) => {
      const next = step(record, nowUs);
      return {
        record: { next, keepUntilUs: breakerRecordExpiryUs(next, nowUs) },
        result: sharedStatusOf(name, next, nowUs),
      };
    });
  }
}

import { type SharedBreakerStatus, sharedStatusOf } from "../breaker/host-status.ts";
import type { BreakerRecord } from "../core/breaker/breaker-record.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import { loadPublishedPolicy, type PublishedPolicy } from "../policy/published-policy.ts";
import type { Role } from "../policy/roles.ts";
import { canonicalUnit } from "../policy/service-name.ts";
import { POLICY_PREFIX, PROCESS_PREFIX, type ProcessRecord } from "../stores/process-record.ts";
import { HOST_RECORDS, hostRecordName, RESOLVER_RECORDS } from "../stores/record-names.ts";
import type { RecordReader } from "../stores/store.ts";
import type { PublishedStatus } from "./status-publisher.ts";

/** A process that has written its status to the store within the last minute. */
export type RunningProcess = ProcessRecord<PublishedStatus> & { readonly processId: string };

/** A policy that running processes use. */
export interface RunningPolicy {
  readonly policy: LoadedPolicy;
  readonly processes: readonly RunningProcess[];
}

/** An operator's order in the store that holds the calls to a host or service. */
export interface RecordedHold {
  readonly unit: string;
  /** As it is stored. */
  readonly reason: string;
  readonly remainingMs: number;
}

/** What running processes have written to the store that they share (law S6). Reads only. */
export class Observer {
  readonly #records: RecordReader;

  constructor(records: RecordReader) {
    this.#records = records;
  }

  /** Every host, service and resolver that has a record in the store. */
  async hosts(): Promise<readonly SharedBreakerStatus[]> {
    const lists = await Promise.all([
      this.#records.list<BreakerRecord>(HOST_RECORDS),
      this.#records.list<BreakerRecord>(RESOLVER_RECORDS),
    ]);
    return lists.flat().map(({ name, record, nowUs }) => sharedStatusOf(name, record, nowUs));
  }

  /** @param host a host, or `service <name>` */
  async host(host: string): Promise<SharedBreakerStatus> {
    const name = hostRecordName(canonicalUnit(host));
    const { record, nowUs } = await this.#records.read<BreakerRecord>(name);
    return sharedStatusOf(name, record, nowUs);
  }

  /** The order that holds the calls of a role to these hosts and services: of several, the one that ends last. */
  async hold(units: readonly string[], role: Role): Promise<RecordedHold | undefined> {
    const found = await Promise.all(
      [...new Set(units)].map(async unit => {
        const { record, nowUs } = await this.#records.read<BreakerRecord>(hostRecordName(canonicalUnit(unit)));
        const { untilUs = 0, reason = "" } = record?.holds?.[role] ?? {};
        return { unit, reason, remainingMs: Math.ceil((untilUs - nowUs) / 1000) };
      }),
    );
    return found.filter(({ remainingMs }) => remainingMs > 0).toSorted((a, b) => b.remainingMs - a.remainingMs)[0];
  }

  async processes(): Promise<readonly RunningProcess[]> {
    const found = await this.#records.list<ProcessRecord<PublishedStatus>>(PROCESS_PREFIX);
    return found.flatMap(({ name, record }) =>
      record === undefined ? [] : [{ ...record, processId: name.slice(PROCESS_PREFIX.length) }],
    );
  }

  /** The policy that processes with this `configHash` have published; undefined if it is too large for that. */
  async policy(hash: string): Promise<LoadedPolicy | undefined> {
    const { record } = await this.#records.read<PublishedPolicy>(POLICY_PREFIX + hash);
    return record && loadPublishedPolicy(record);
  }

  /**
   * The policies of the running processes, the one with the most recent status first. A policy that is too large to be
   * published is missing.
   */
  async policies(): Promise<readonly RunningPolicy[]> {
    const byHash = Map.groupBy(
      (await this.processes()).toSorted((a, b) => b.writtenMs - a.writtenMs),
      ({ configHash = "" }) => configHash,
    );
    const found = await Promise.all(
      Array.from(byHash, async ([hash, processes]) => {
        const policy = await this.policy(hash);
        return policy === undefined ? [] : [{ policy, processes }];
      }),
    );
    return found.flat();
  }
}

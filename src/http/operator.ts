import { type SharedBreakerStatus, sharedStatusOf } from "../breaker/host-status.ts";
import { type OrderRequest, type OrderTarget, orderFor } from "../breaker/orders.ts";
import { giveOrder, type OperatorOrder } from "../core/breaker/breaker-order.ts";
import {
  type BreakerRecord,
  breakerRecordExpiryUs,
  circuitRecordOf,
  EMPTY_BREAKER_RECORD,
} from "../core/breaker/breaker-record.ts";
import { StoreError } from "../errors.ts";
import { nameWithoutPartition } from "../policy/partition-name.ts";
import { canonicalUnit } from "../policy/service-name.ts";
import { announceOrder, isInLog } from "../stores/order-log.ts";
import {
  type BreakerRecordName,
  HOST_RECORDS,
  hostOfRecord,
  hostRecordName,
  resolverRecordName,
} from "../stores/record-names.ts";
import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";
import { Observer, type RunningProcess } from "./observer.ts";

/** An order that is in the store. */
export interface GivenOrder {
  /** The host or resolver after the order. */
  readonly status: SharedBreakerStatus;
  /** False if an order to open or hold changed nothing: a running order ends later, and was not to be replaced. */
  readonly isChanged: boolean;
  /** Milliseconds until the order in force ends, which may be a longer earlier one; 0 after an order that ends others. */
  readonly remainingMs: number;
  /** The same for each role that the order is for; empty if it is for circuits. `remainingMs` is the longest. */
  readonly roles: readonly { readonly role: string; readonly remainingMs: number }[];
  /** Its number in the log of orders. */
  readonly sequence: number;
}

/** What an order did in one running process. */
export interface Acknowledgement {
  readonly process: RunningProcess;
  /**
   * `applied`: it is in force. `shadow`: the process reports what it would refuse, and sends it. `silent`: no answer in
   * time; the process reads the order before its next request.
   */
  readonly effect: "applied" | "shadow" | "silent";
}

/**
 * The store has failed after it had taken an order, or a part of it. The processes read what is stored before their next
 * request.
 */
export class UnconfirmedOrderError extends StoreError {
  constructor(known: string, cause: StoreError) {
    super(`${known}: ${cause.message}`, { cause });
  }
}

/** The commands of an operator. They act on running processes through the store that these share (laws S6, B11). */
export class Operator extends Observer {
  readonly #store: Store;

  constructor(store: Store) {
    super(store);
    this.#store = store;
  }

  /**
   * Writes an order to the store and notifies the running processes. An order that closes or half-opens a host, or one
   * role of it, applies to its partitions too. Rejects with an UnconfirmedOrderError if the store fails after the first write.
   */
  async order(target: OrderTarget, request: OrderRequest): Promise<GivenOrder> {
    const given = await this.#writeOrder(recordNameOf(target), target, request);
    const [partitions] = await Promise.allSettled([this.#orderPartitions(target, request)]);
    // The processes are notified of what is stored, whatever is missing.
    const [sequence] = await Promise.allSettled([announceOrder(this.#store, recordNameOf(target))]);
    if (partitions.status === "rejected") partlyStored(partitions.reason);
    if (sequence.status === "rejected") unconfirmed(sequence.reason);
    return { ...given, sequence: sequence.value };
  }

  /** Gives the orders one after the other. Rejects with an UnconfirmedOrderError if the store fails after the first write. */
  async orderAll(
    orders: readonly { readonly target: OrderTarget; readonly request: OrderRequest }[],
  ): Promise<readonly GivenOrder[]> {
    const given: GivenOrder[] = [];
    for (const [index, { target, request }] of orders.entries()) {
      try {
        given.push(await this.order(target, request));
      } catch (error) {
        const isStored = error instanceof UnconfirmedOrderError;
        if ((index === 0 && !isStored) || (isStored && index === orders.length - 1)) throw error;
        partlyStored(isStored ? error.cause : error);
      }
    }
    return given;
  }

  /**
   * Asks the running processes to publish what they know about these hosts and services, also those that they do not list
   * by themselves, and waits for them. Changes nothing else. The log of orders is short: if later orders displaced the
   * question before a process read it, the process is asked again. It is `silent` if the time is over.
   */
  async ask(units: readonly string[], time: Time, timeoutMs: number): Promise<readonly Acknowledgement[]> {
    const deadlineUs = time.monotonicUs() + timeoutMs * 1000;
    for (;;) {
      const sequences: number[] = [];
      for (const unit of units) sequences.push(await announceOrder(this.#store, hostRecordName(unit)));
      const found = await this.#waitForProcesses(sequences, time, (deadlineUs - time.monotonicUs()) / 1000);
      const answers = found.map(({ process, effect }) => {
        const { sequence = 0 } = process.orders ?? {};
        return { process, effect: sequences.every(asked => isInLog(asked, sequence)) ? effect : ("silent" as const) };
      });
      if (answers.every(({ effect }) => effect !== "silent") || time.monotonicUs() >= deadlineUs) return answers;
    }
  }

  /**
   * Waits until every running process has applied these orders, at most `timeoutMs`. Rejects with an
   * UnconfirmedOrderError if the store fails meanwhile.
   */
  acknowledgements(sequences: readonly number[], time: Time, timeoutMs: number): Promise<readonly Acknowledgement[]> {
    return this.#waitForProcesses(sequences, time, timeoutMs).catch(unconfirmed);
  }

  async #waitForProcesses(
    sequences: readonly number[],
    time: Time,
    timeoutMs: number,
  ): Promise<readonly Acknowledgement[]> {
    const deadlineUs = time.monotonicUs() + timeoutMs * 1000;
    let wake: () => void = () => undefined;
    const subscription = this.#store.signals?.listen("acks", () => wake());
    try {
      for (;;) {
        const { promise: woken, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        const found = (await this.processes()).map(process => ({ process, effect: effectOf(process, sequences) }));
        const leftUs = deadlineUs - time.monotonicUs();
        if (leftUs <= 0 || found.every(({ effect }) => effect !== "silent")) return found;
        const timer = time.setTimer(leftUs / 1000, resolve);
        await woken;
        timer.cancel();
      }
    } finally {
      subscription?.stop();
    }
  }

  /** Resolves when the order is in the records of all partitions of its host, if it applies to them. */
  async #orderPartitions(target: OrderTarget, request: OrderRequest): Promise<void> {
    if ("resolver" in target || (request.kind !== "close" && request.kind !== "half-open")) return;
    const unit = canonicalUnit(target.unit);
    const names = (await this.#store.list<BreakerRecord>(HOST_RECORDS)).map(({ name }) => hostOfRecord(name) ?? "");
    const partitions = names.filter(name => nameWithoutPartition(name) === unit);
    const written = await Promise.allSettled(
      partitions.map(name => this.#writeOrder(hostRecordName(name), target, request)),
    );
    const failed = written.find(result => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  #writeOrder(
    name: BreakerRecordName,
    target: OrderTarget,
    request: OrderRequest,
  ): Promise<Omit<GivenOrder, "sequence">> {
    return this.#store.change<BreakerRecord, Omit<GivenOrder, "sequence">>(
      name,
      ({ record = EMPTY_BREAKER_RECORD, nowUs }) => {
        const order = orderFor(target, request);
        const next = giveOrder(record, order, nowUs);
        const mayChangeNothing = order.kind === "open" || order.kind === "hold";
        const before = orderedEnds(record, order);
        const ends = orderedEnds(next, order).map(({ role, untilUs }, index) => ({
          ...{ role, isChanged: untilUs !== before[index]?.untilUs },
          remainingMs: Math.max(0, Math.ceil((untilUs - nowUs) / 1000)),
        }));
        const result = {
          status: sharedStatusOf(name, next, nowUs),
          isChanged: !mayChangeNothing || ends.some(end => end.isChanged),
          remainingMs: Math.max(...ends.map(end => end.remainingMs)),
          roles: ends.flatMap(({ role, remainingMs }) => (role === undefined ? [] : [{ role, remainingMs }])),
        };
        return { record: { next, keepUntilUs: breakerRecordExpiryUs(next, nowUs) }, result };
      },
    );
  }
}

function unconfirmed(error: unknown): never {
  throw orderError("the order is stored, but whether processes have applied it is unknown", error);
}

function partlyStored(error: unknown): never {
  throw orderError("only a part of the order is stored, give it again", error);
}

function orderError(known: string, error: unknown): unknown {
  return error instanceof StoreError ? new UnconfirmedOrderError(known, error) : error;
}

function recordNameOf(target: OrderTarget): BreakerRecordName {
  return "resolver" in target ? resolverRecordName(target.resolver) : hostRecordName(canonicalUnit(target.unit));
}

/** When the recorded orders for the same target end, one for each role or one for its circuits; 0 if there is none. */
function orderedEnds(
  record: BreakerRecord,
  order: OperatorOrder,
): readonly { readonly role: string | undefined; readonly untilUs: number }[] {
  if ("roles" in order) {
    const isHold = order.kind === "hold" || order.kind === "release";
    const records = isHold ? record.holds : record.limits;
    return order.roles.map(role => ({ role, untilUs: records?.[role]?.untilUs ?? 0 }));
  }
  const { circuit } = order;
  const opened = circuit === undefined ? record.operatorCooldown : circuitRecordOf(record, circuit).order;
  return [{ role: undefined, untilUs: opened?.untilUs ?? 0 }];
}

function effectOf({ orders }: RunningProcess, sequences: readonly number[]): Acknowledgement["effect"] {
  if (orders === undefined || sequences.some(sequence => sequence > orders.sequence)) return "silent";
  return sequences.some(sequence => orders.shadowed.includes(sequence)) ? "shadow" : "applied";
}

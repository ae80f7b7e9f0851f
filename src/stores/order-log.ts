import type { BreakerRecordName } from "./record-names.ts";
import type { Store } from "./store.ts";

/**
 * The latest orders of operators, in the store: which records they have changed. The orders themselves are in those
 * records. The log names the records that a running process has to read at once. Without the log, the process would read them
 * only before its next request.
 */
export interface OrderLog {
  /** The number of the latest order. Each order has the next number; a new log begins at the clock of the store. */
  readonly sequence: number;
  /** The latest orders, oldest first. */
  readonly entries: readonly OrderEntry[];
}

export interface OrderEntry {
  readonly sequence: number;
  readonly name: BreakerRecordName;
}

/** What a process publishes about the orders that it has applied. */
export interface AppliedOrders {
  /** The sequence number of the last order that it has applied. */
  readonly sequence: number;
  /** Of the latest orders, those without effect in this process: their host or resolver is in shadow mode. */
  readonly shadowed: readonly number[];
}

export const ORDER_LOG_NAME = "orders";
export const EMPTY_ORDER_LOG: OrderLog = Object.freeze({ sequence: 0, entries: [] });
/** A process that misses more orders than this still applies them: each request reads the records of its host. */
const LOGGED_ORDERS_MAX = 64;
/** Much longer than a process needs to read it. */
const ORDER_LOG_KEPT_US = 30 * 86_400_000_000;

/** Whether the log still had the entry when its last number was `lastSequence`: later orders displace earlier ones. */
export function isInLog(sequence: number, lastSequence: number): boolean {
  return sequence <= lastSequence && lastSequence - sequence < LOGGED_ORDERS_MAX;
}

/**
 * A store that has lost its data begins a new log. It begins at the milliseconds of the store's clock, so that its numbers
 * are higher than those that processes remember of the lost log: a process has not applied an order that it has not read.
 */
function withOrder(log: OrderLog, name: BreakerRecordName, nowUs: number): OrderLog {
  const sequence = (log.sequence === 0 ? Math.max(0, Math.floor(nowUs / 1000)) : log.sequence) + 1;
  return { sequence, entries: [...log.entries, { sequence, name }].slice(-LOGGED_ORDERS_MAX) };
}

/** Adds an order to the log and notifies the processes. Returns its number in the log. */
export async function announceOrder(store: Store, name: BreakerRecordName): Promise<number> {
  const sequence = await store.change<OrderLog, number>(ORDER_LOG_NAME, ({ record = EMPTY_ORDER_LOG, nowUs }) => {
    const next = withOrder(record, name, nowUs);
    return { record: { next, keepUntilUs: nowUs + ORDER_LOG_KEPT_US }, result: next.sequence };
  });
  // A process that is not notified reads the order before its next request.
  await store.signals?.send("orders").catch(() => undefined);
  return sequence;
}

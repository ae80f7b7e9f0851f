import { type AppliedOrders, EMPTY_ORDER_LOG, ORDER_LOG_NAME, type OrderLog } from "../stores/order-log.ts";
import { type BreakerRecordName, hostOfRecord } from "../stores/record-names.ts";
import type { SignalSubscription, Store } from "../stores/store.ts";

export interface OrderWatchDeps {
  readonly store: Store;
  /** Reads these records and applies them. Resolves to false if the store could not be reached. */
  readonly refresh: (names: readonly BreakerRecordName[]) => Promise<boolean>;
  /** Whether an order in this record has no effect in this process. */
  readonly isShadow: (name: BreakerRecordName) => boolean;
  /** Called after orders were applied. */
  readonly onApplied: () => void;
}

/**
 * Applies the orders of operators as soon as they are given (law B11). A process also reads every record before it
 * sends a request, so that an order applies to its requests even if it was not notified.
 */
export class OrderWatch {
  readonly #deps: OrderWatchDeps;
  #subscription: SignalSubscription | undefined;
  /** Undefined before the log was first read: the orders in it are older than everything this process knows. */
  #sequence: number | undefined;
  /** Sequence numbers of the orders that have no effect in this process. */
  #shadowed: readonly number[] = [];
  #hosts: ReadonlySet<string> = new Set();
  #checking: Promise<void> | undefined;
  #isCheckDue = false;
  /** The last check failed, so orders may have been missed. */
  #isBehind = false;
  #isStopped = false;

  constructor(deps: OrderWatchDeps) {
    this.#deps = deps;
  }

  get applied(): AppliedOrders {
    return { sequence: this.#sequence ?? 0, shadowed: this.#shadowed };
  }

  /**
   * The hosts and services that the latest orders and questions of operators are about, at most one for each entry of
   * the log.
   */
  get hosts(): ReadonlySet<string> {
    return this.#hosts;
  }

  /**
   * Starts listening, and listens again if the notifications have ended. Call it from time to time: while there are no
   * notifications, each call reads the log. Resolves when it was read, or could not be; never rejects.
   */
  async ensureListening(): Promise<void> {
    const isListening = this.#subscription?.isActive === true;
    if (this.#isStopped || (isListening && !this.#isBehind)) return;
    if (!isListening) {
      this.#subscription?.stop();
      this.#subscription = this.#deps.store.signals?.listen("orders", () => void this.check());
    }
    await this.check();
  }

  /** Reads the log and applies the orders that are new. Never rejects. */
  check(): Promise<void> {
    this.#isCheckDue = true;
    this.#checking ??= this.#checkWhileDue().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  stop(): void {
    this.#isStopped = true;
    this.#subscription?.stop();
  }

  async #checkWhileDue(): Promise<void> {
    while (this.#isCheckDue && !this.#isStopped) {
      this.#isCheckDue = false;
      try {
        this.#isBehind = !(await this.#applyNew());
      } catch {
        // The gate reports a store that is unavailable. The next call of `ensureListening` reads the log again.
        this.#isBehind = true;
      }
    }
  }

  /** False if the store could not be reached. */
  async #applyNew(): Promise<boolean> {
    const { store, refresh, isShadow, onApplied } = this.#deps;
    const { record: log = EMPTY_ORDER_LOG } = await store.read<OrderLog>(ORDER_LOG_NAME);
    const before = this.#sequence ?? log.sequence;
    // A store that has lost its data, and whose clock was set back, has a new log with lower numbers.
    const entries = log.sequence < before ? log.entries : log.entries.filter(({ sequence }) => sequence > before);
    if (entries.length > 0 && !(await refresh([...new Set(entries.map(({ name }) => name))]))) return false;
    this.#sequence = log.sequence;
    this.#hosts = new Set(log.entries.flatMap(({ name }) => hostOfRecord(name) ?? []));
    if (entries.length === 0) return true;
    const stillListed = this.#shadowed.filter(sequence => log.entries.some(entry => entry.sequence === sequence));
    const shadowed = entries.filter(({ name }) => isShadow(name)).map(({ sequence }) => sequence);
    this.#shadowed = [...new Set([...stillListed, ...shadowed])];
    onApplied();
    return true;
  }
}

import { randomUUID } from "node:crypto";
import { messageOf, StoreError } from "../errors.ts";
import type {
  LeaseReply,
  LeaseRequest,
  RecordUpdate,
  Settlement,
  SignalSubscription,
  SignalTopic,
  Store,
  StoreRecord,
  StoreSignals,
  UseReport,
} from "./store.ts";

/** A store that is opened at the first use, and again after a failure. */
export class LazyStore implements Store {
  /** Not the id of the wrapped store: this id is used before the wrapped store is open. */
  readonly processId: string = randomUUID();
  readonly #open: () => Promise<Store>;
  #opening: Promise<Store> | undefined;
  #store: Store | undefined;

  constructor(open: () => Promise<Store>) {
    this.#open = open;
  }

  get processes(): number {
    return this.#store?.processes ?? 1;
  }

  get signals(): StoreSignals {
    return {
      send: async topic => (await this.#opened()).signals?.send(topic),
      listen: (topic, listener) => new LazySubscription(this.#opened(), topic, listener),
    };
  }

  /**
   * Opens the store now. Rejects with a StoreError that is permanent if no retry can succeed. Resolves for a store that
   * is only unreachable: it is opened when it is next used.
   */
  async openUnlessAway(): Promise<void> {
    try {
      await this.#opened();
    } catch (error) {
      if (error instanceof StoreError && error.isPermanent) throw error;
    }
  }

  async exchange(
    settlements: readonly Settlement[],
    requests: readonly LeaseRequest[],
    reports: readonly UseReport[] = [],
  ): Promise<readonly LeaseReply[]> {
    return (await this.#opened()).exchange(settlements, requests, reports);
  }

  async read<Value>(name: string): Promise<StoreRecord<Value>> {
    return (await this.#opened()).read(name);
  }

  async change<Value, Result>(
    name: string,
    step: (current: StoreRecord<Value>) => RecordUpdate<Value, Result>,
  ): Promise<Result> {
    return (await this.#opened()).change(name, step);
  }

  async list<Value>(prefix: string): Promise<readonly (StoreRecord<Value> & { readonly name: string })[]> {
    return (await this.#opened()).list(prefix);
  }

  async close(): Promise<void> {
    // A store that could not be opened has nothing to close.
    await this.#opening?.then(
      store => store.close(),
      () => undefined,
    );
  }

  async #opened(): Promise<Store> {
    this.#opening ??= this.#open();
    try {
      this.#store = await this.#opening;
      return this.#store;
    } catch (cause) {
      this.#opening = undefined;
      throw cause instanceof StoreError
        ? cause
        : new StoreError(`cannot open the store: ${messageOf(cause)}`, { cause });
    }
  }
}

/** Listens as soon as the store is open. If it cannot be opened, the subscription stays inactive. */
class LazySubscription implements SignalSubscription {
  #subscription: SignalSubscription | undefined;
  #isStopped = false;

  constructor(opened: Promise<Store>, topic: SignalTopic, listener: () => void) {
    opened.then(
      store => {
        if (!this.#isStopped) this.#subscription = store.signals?.listen(topic, listener);
      },
      () => undefined,
    );
  }

  get isActive(): boolean {
    return this.#subscription?.isActive === true;
  }

  stop(): void {
    this.#isStopped = true;
    this.#subscription?.stop();
  }
}

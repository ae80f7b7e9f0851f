import type { Store } from "../../src/stores/store.ts";

/** Counts the calls in flight of a store, so that a test can step the clock between two of them. */
export class IdleStore implements Store {
  readonly #store: Store;
  readonly #pending = new Set<Promise<unknown>>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Resolves when no call is in flight. */
  async idle(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
  }

  get processId(): string {
    return this.#store.processId;
  }

  get processes(): number {
    return this.#store.processes;
  }

  get signals(): Store["signals"] {
    return this.#store.signals;
  }

  exchange(...call: Parameters<Store["exchange"]>): ReturnType<Store["exchange"]> {
    return this.#counted(this.#store.exchange(...call));
  }

  read: Store["read"] = name => this.#counted(this.#store.read(name));
  change: Store["change"] = (name, step) => this.#counted(this.#store.change(name, step));
  list: Store["list"] = prefix => this.#counted(this.#store.list(prefix));

  close(): Promise<void> {
    return this.#store.close();
  }

  #counted<Value>(call: Promise<Value>): Promise<Value> {
    this.#pending.add(call);
    const forget = () => this.#pending.delete(call);
    call.then(forget, forget);
    return call;
  }
}

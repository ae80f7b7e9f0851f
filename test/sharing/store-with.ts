import type { Store } from "../../src/stores/store.ts";

/** The store with some other members, and without notifications unless they are given. */
export function storeWith(store: Store, parts: Partial<Store>): Store {
  return {
    processId: store.processId,
    get processes() {
      return parts.processes ?? store.processes;
    },
    signals: parts.signals,
    exchange: parts.exchange ?? ((...exchange) => store.exchange(...exchange)),
    read: parts.read ?? (name => store.read(name)),
    change: parts.change ?? ((name, step) => store.change(name, step)),
    list: parts.list ?? (prefix => store.list(prefix)),
    close: parts.close ?? (() => store.close()),
  };
}

import { type Dispatcher, getGlobalDispatcher, setGlobalDispatcher } from "undici";
import type { HubDispatcher } from "./hub-dispatcher.ts";

/** The undici inside Node is older and reads its global dispatcher from this symbol. */
const BUILT_IN_SLOT = Symbol.for("undici.globalDispatcher.1");

/** A place from which undici reads its global dispatcher. */
interface Slot {
  get(): unknown;
  set(dispatcher: unknown): void;
}

const globals = globalThis as { [BUILT_IN_SLOT]?: unknown };
const SLOTS: readonly Slot[] = [
  { get: getGlobalDispatcher, set: dispatcher => setGlobalDispatcher(dispatcher as Dispatcher) },
  // After the first one: setGlobalDispatcher puts a wrapper here that supports only HTTP/1.1. HubDispatcher accepts the
  // older handlers itself.
  {
    get: () => globals[BUILT_IN_SLOT],
    set: dispatcher => {
      globals[BUILT_IN_SLOT] = dispatcher;
    },
  },
];

/** An installed dispatcher, and the one that it replaced in each slot. */
interface Installation {
  readonly dispatcher: HubDispatcher;
  readonly previous: unknown[];
}

/** In the order of installation. */
const installations: Installation[] = [];

/**
 * Makes a dispatcher the global one, for undici's fetch and for Node's own. Returns a function that restores the previous
 * one. Several installations may be undone in any order. A slot that other code has set since then is left as it is. If
 * that code passes requests on to this dispatcher, they go to the previous one.
 */
export function install(dispatcher: HubDispatcher): () => void {
  const installation: Installation = { dispatcher, previous: SLOTS.map(slot => slot.get()) };
  installations.push(installation);
  for (const slot of SLOTS) slot.set(dispatcher);
  return () => {
    const at = installations.indexOf(installation);
    if (at === -1) return;
    installations.splice(at, 1);
    const current = SLOTS.map(slot => slot.get());
    for (const [index, slot] of SLOTS.entries()) {
      const above = installations.find(({ previous }) => previous[index] === dispatcher);
      if (above !== undefined) above.previous[index] = installation.previous[index];
      // Setting the first slot changes the second one, which must keep a dispatcher of other code.
      slot.set(current[index] === dispatcher ? installation.previous[index] : current[index]);
    }
    const [previous, olderPrevious] = installation.previous as Dispatcher[];
    dispatcher.passRequestsTo(hasOlderHandler => (hasOlderHandler ? olderPrevious : previous) as Dispatcher);
  };
}

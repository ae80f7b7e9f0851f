import { type Dispatcher, getGlobalDispatcher, setGlobalDispatcher } from "undici";

/** The undici inside Node is older and reads its global dispatcher from this symbol. */
const BUILT_IN_SLOT = Symbol.for("undici.globalDispatcher.1");

/** An installed dispatcher and the ones that it replaced. */
interface Installation {
  readonly dispatcher: Dispatcher;
  previous: Dispatcher;
  previousBuiltIn: unknown;
}

/** In the order of installation. */
const installations: Installation[] = [];

/**
 * Makes a dispatcher the global one, for undici's fetch and for Node's own. Returns a function that restores the previous
 * one. Several installations may be undone in any order; a dispatcher that was set by other means is left in place.
 */
export function install(dispatcher: Dispatcher): () => void {
  const slots = globalThis as { [BUILT_IN_SLOT]?: unknown };
  const installation: Installation = {
    dispatcher,
    previous: getGlobalDispatcher(),
    previousBuiltIn: slots[BUILT_IN_SLOT],
  };
  installations.push(installation);
  setGlobalDispatcher(dispatcher);
  // setGlobalDispatcher puts a wrapper there that supports only HTTP/1.1. HubDispatcher accepts the older handlers itself.
  slots[BUILT_IN_SLOT] = dispatcher;
  return () => {
    const at = installations.indexOf(installation);
    if (at === -1) return;
    installations.splice(at, 1);
    const { previous, previousBuiltIn } = installation;
    const above = installations.find(({ previous }) => previous === dispatcher);
    if (above !== undefined) Object.assign(above, { previous, previousBuiltIn });
    if (getGlobalDispatcher() !== dispatcher) return;
    setGlobalDispatcher(previous);
    slots[BUILT_IN_SLOT] = previousBuiltIn;
  };
}

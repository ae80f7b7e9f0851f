import { type Dispatcher, getGlobalDispatcher, setGlobalDispatcher } from "undici";

/** Where the older undici inside Node looks for its dispatcher. */
const BUILT_IN_SLOT = Symbol.for("undici.globalDispatcher.1");

/** Somebody who has taken the place, and who is to have it after him. */
interface Installation {
  readonly dispatcher: Dispatcher;
  previous: Dispatcher;
  previousBuiltIn: unknown;
}

/** In the order in which they came. */
const installations: Installation[] = [];

/**
 * Makes a dispatcher the one of every fetch in this process: undici's, and Node's own, whose slot is another. Answers
 * with the way back, in whichever order several are taken; it leaves alone who has taken the place by other means.
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
  // undici puts a wrapper there that speaks HTTP/1.1 only; ours understands the older handlers by itself.
  slots[BUILT_IN_SLOT] = dispatcher;
  return () => {
    const at = installations.indexOf(installation);
    if (at === -1) return;
    installations.splice(at, 1);
    const { previous, previousBuiltIn } = installation;
    const above = installations.find(one => one.previous === dispatcher);
    if (above !== undefined) Object.assign(above, { previous, previousBuiltIn });
    if (getGlobalDispatcher() !== dispatcher) return;
    setGlobalDispatcher(previous);
    slots[BUILT_IN_SLOT] = previousBuiltIn;
  };
}

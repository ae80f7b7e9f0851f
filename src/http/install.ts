import { type Dispatcher, getGlobalDispatcher, setGlobalDispatcher } from "undici";

/** Where the older undici inside Node looks for its dispatcher. */
const OLDER_SLOT = Symbol.for("undici.globalDispatcher.1");

/** Somebody who has taken the place, and who is to have it after him. */
interface Layer {
  readonly dispatcher: Dispatcher;
  before: Dispatcher;
  beforeOlder: unknown;
}

/** In the order in which they came. */
const layers: Layer[] = [];

/**
 * Makes a dispatcher the one of every fetch in this process: undici's, and Node's own, whose slot is another. Answers
 * with the way back, in whichever order several are taken; it leaves alone who has taken the place by other means.
 */
export function install(dispatcher: Dispatcher): () => void {
  const slots = globalThis as { [OLDER_SLOT]?: unknown };
  const layer: Layer = { dispatcher, before: getGlobalDispatcher(), beforeOlder: slots[OLDER_SLOT] };
  layers.push(layer);
  setGlobalDispatcher(dispatcher);
  // undici puts a wrapper there that speaks HTTP/1.1 only; ours understands the older handlers by itself.
  slots[OLDER_SLOT] = dispatcher;
  return () => {
    const at = layers.indexOf(layer);
    if (at === -1) return;
    layers.splice(at, 1);
    const { before, beforeOlder } = layer;
    const above = layers.find(one => one.before === dispatcher);
    if (above !== undefined) Object.assign(above, { before, beforeOlder });
    if (getGlobalDispatcher() !== dispatcher) return;
    setGlobalDispatcher(before);
    slots[OLDER_SLOT] = beforeOlder;
  };
}

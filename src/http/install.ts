import { type Dispatcher, getGlobalDispatcher, setGlobalDispatcher } from "undici";

/** Where the older undici inside Node looks for its dispatcher. */
const OLDER_SLOT = Symbol.for("undici.globalDispatcher.1");

/**
 * Makes a dispatcher the one of every fetch in this process: undici's, and Node's own, whose slot is another. Answers
 * with the way back, which does nothing when somebody else has taken the place meanwhile.
 */
export function install(dispatcher: Dispatcher): () => void {
  const slots = globalThis as { [OLDER_SLOT]?: unknown };
  const before = getGlobalDispatcher();
  const beforeOlder = slots[OLDER_SLOT];
  setGlobalDispatcher(dispatcher);
  // undici puts a wrapper there that speaks HTTP/1.1 only; ours understands the older handlers by itself.
  slots[OLDER_SLOT] = dispatcher;
  return () => {
    if (getGlobalDispatcher() !== dispatcher) return;
    setGlobalDispatcher(before);
    slots[OLDER_SLOT] = beforeOlder;
  };
}

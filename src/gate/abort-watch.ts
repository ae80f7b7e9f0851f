/** The callbacks for one signal, behind a single listener. */
interface Watch {
  readonly watchers: Set<() => void>;
  readonly stop: () => void;
}

const watches = new WeakMap<AbortSignal, Watch>();

/**
 * Calls `aborted` when the signal is aborted; returns a function that stops watching.
 * `addEventListener` searches all listeners of the signal, so 10,000 waits with one signal would take quadratic time.
 * Here they share one listener.
 */
export function onAbort(signal: AbortSignal, aborted: () => void): () => void {
  const watch = watches.get(signal) ?? startWatch(signal);
  watch.watchers.add(aborted);
  return () => {
    watch.watchers.delete(aborted);
    if (watch.watchers.size === 0) watch.stop();
  };
}

function startWatch(signal: AbortSignal): Watch {
  const watchers = new Set<() => void>();
  const fire = () => {
    for (const aborted of watchers) aborted();
  };
  const watch = {
    watchers,
    stop: () => {
      if (watches.get(signal) === watch) watches.delete(signal);
      signal.removeEventListener("abort", fire);
    },
  };
  watches.set(signal, watch);
  signal.addEventListener("abort", fire, { once: true });
  return watch;
}

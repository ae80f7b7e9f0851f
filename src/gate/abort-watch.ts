/** Those who want to know of one signal's abort, behind a single listener. */
interface Watch {
  readonly watchers: Set<() => void>;
  readonly stop: () => void;
}

const watches = new WeakMap<AbortSignal, Watch>();

/**
 * Calls `aborted` when the signal is; answers with the way to stop.
 * Adding a listener to a signal looks through those it has, so that ten thousand waits under one signal would cost ten
 * thousand times ten thousand: here they share one.
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

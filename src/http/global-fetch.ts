type Fetch = typeof globalThis.fetch;

/** A wrapper of the global fetch and the function that it wraps. */
interface WrappedFetch {
  readonly wrapper: Fetch;
  previous: Fetch;
}

/** In the order of installation. */
const wrappers: WrappedFetch[] = [];

/**
 * Replaces the global fetch by a wrapper that calls `around`. The first argument of `around` calls the previous fetch.
 * Returns a function that restores the previous fetch. Several wrappers may be removed in any order. If other code has
 * replaced the global fetch since then, its function stays in place; when it calls this wrapper, `around` is skipped.
 */
export function wrapGlobalFetch(
  around: (call: () => Promise<Response>, ...args: Parameters<Fetch>) => Promise<Response>,
): () => void {
  let isRemoved = false;
  const entry: WrappedFetch = {
    previous: globalThis.fetch,
    wrapper: function fetch(...args) {
      const call = () => entry.previous(...args);
      return isRemoved ? call() : around(call, ...args);
    },
  };
  wrappers.push(entry);
  globalThis.fetch = entry.wrapper;
  return () => {
    if (isRemoved) return;
    isRemoved = true;
    wrappers.splice(wrappers.indexOf(entry), 1);
    const above = wrappers.find(({ previous }) => previous === entry.wrapper);
    if (above !== undefined) above.previous = entry.previous;
    if (globalThis.fetch === entry.wrapper) globalThis.fetch = entry.previous;
  };
}

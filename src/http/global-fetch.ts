type Fetch = typeof globalThis.fetch;

/** A wrapper of the global fetch and the function that it wraps. */
interface WrappedFetch {
  readonly wrapper: Fetch;
  previous: Fetch;
}

/** In the order of installation. */
const wrapped: WrappedFetch[] = [];

/**
 * Replaces the global fetch by one that calls `around` with a function that calls the previous fetch. Returns a function
 * that restores the previous one. Several wrappers may be removed in any order. If other code has replaced the global
 * fetch since then, its function stays in place; when it calls this wrapper, `around` is skipped.
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
  wrapped.push(entry);
  globalThis.fetch = entry.wrapper;
  return () => {
    if (isRemoved) return;
    isRemoved = true;
    wrapped.splice(wrapped.indexOf(entry), 1);
    const above = wrapped.find(({ previous }) => previous === entry.wrapper);
    if (above !== undefined) above.previous = entry.previous;
    if (globalThis.fetch === entry.wrapper) globalThis.fetch = entry.previous;
  };
}

import { AsyncResource } from "node:async_hooks";
import type { buildConnector } from "undici";

export type Connector = buildConnector.connector;
type Callback = Parameters<Connector>[1];

/**
 * Until undici knows whether an https origin supports HTTP/2, it opens connections for queued requests one after the
 * other. Fifty requests to a silent host would time out one by one, over eight minutes. undici starts the next connection
 * inside the callback that reports the timeout, so every connection that is started there fails with the same timeout.
 */
export function sharingTimeouts(connector: Connector): Connector {
  /** The connections that fail with the timeout that is being reported, by origin. */
  const failing = new Map<string, Callback[]>();
  return (dial, callback) => {
    const key = `${dial.protocol}//${dial.host ?? dial.hostname}:${dial.port}`;
    const callbacks = failing.get(key);
    if (callbacks === undefined)
      connector(dial, (...answer) => {
        const [error] = answer;
        if (error !== null && (error as NodeJS.ErrnoException).code === "UND_ERR_CONNECT_TIMEOUT") {
          const started = [callback];
          failing.set(key, started);
          failAll(started, error, () => failing.delete(key));
        } else callback(...answer);
      });
    // Not here: undici would start the one after it inside this call, and a few hundred such calls overflow the stack.
    else callbacks.push(AsyncResource.bind(callback));
  };
}

/** Calls the callbacks one after the other, also those that are added meanwhile, and then `done`. */
function failAll(callbacks: Callback[], error: Error, done: () => void): void {
  try {
    for (let next = callbacks.shift(); next !== undefined; next = callbacks.shift()) next(error, null);
  } finally {
    // After a callback that has thrown, the others must still be called.
    if (callbacks.length > 0) failAll(callbacks, error, done);
    else done();
  }
}

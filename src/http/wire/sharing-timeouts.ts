import type { buildConnector } from "undici";

export type Connector = buildConnector.connector;

/**
 * Until undici knows whether an https origin supports HTTP/2, it opens connections for queued requests one after the
 * other. Fifty requests to a silent host would time out one by one, over eight minutes. undici starts the next connection
 * inside the callback that reports the timeout, so every connection that is started there fails with the same timeout.
 */
export function sharingTimeouts(connector: Connector): Connector {
  const timedOut = new Map<string, Error>();
  return (dial, callback) => {
    const key = `${dial.protocol}//${dial.host ?? dial.hostname}:${dial.port}`;
    const settle: typeof callback = (...answer) => {
      const [error] = answer;
      if (error === null || (error as NodeJS.ErrnoException).code !== "UND_ERR_CONNECT_TIMEOUT") {
        callback(...answer);
        return;
      }
      const isFirst = !timedOut.has(key);
      timedOut.set(key, error);
      try {
        callback(error, null);
      } finally {
        if (isFirst) timedOut.delete(key);
      }
    };
    const sharedError = timedOut.get(key);
    if (sharedError === undefined) connector(dial, settle);
    else settle(sharedError, null);
  };
}

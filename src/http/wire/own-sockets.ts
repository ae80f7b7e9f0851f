import type { buildConnector } from "undici";

/** The connections of all hubs. */
const sockets = new WeakSet<object>();

/** A connector that registers its connections as those of a hub, for `isOwnSocket`. */
export function markingSockets(connector: buildConnector.connector): buildConnector.connector {
  return (dial, callback) =>
    connector(dial, (...result) => {
      const [, socket] = result;
      // undici passes null or nothing beside an error.
      if (socket) sockets.add(socket);
      callback(...result);
    });
}

export function isOwnSocket(socket: object): boolean {
  return sockets.has(socket);
}

/** Whether a hub is passing a request to its wire now. undici creates its request within that call. */
export const ownDispatch = { isRunning: false };

import type { ClientRequest } from "node:http";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";

/**
 * Calls `written` when the headers of a request leave over its socket: at its first write, or when the connection is
 * open if that is later. Must be called when the request gets its socket, before it writes.
 */
export function onHeadersWritten(request: ClientRequest, socket: Socket, written: () => void): void {
  const { write } = socket;
  // Another module may have replaced the `write` of this socket before.
  const isReplaced = Object.hasOwn(socket, "write");
  const restore = () => {
    if (socket.write !== watched) return;
    if (isReplaced) socket.write = write;
    else delete (socket as Partial<Socket>).write;
  };
  const watched = (...chunk: Parameters<Socket["write"]>) => {
    restore();
    whenOpen(socket, written);
    return write.apply(socket, chunk);
  };
  socket.write = watched as Socket["write"];
  request.once("close", restore);
}

/** node:net buffers what is written until the connection is open. Nothing is written to a socket that was destroyed. */
function whenOpen(socket: Socket, onWritten: () => void): void {
  const written = () => socket.destroyed || onWritten();
  const { encrypted, secureConnecting } = socket as TLSSocket & { readonly secureConnecting?: boolean };
  if (encrypted && (socket.connecting || secureConnecting)) socket.once("secureConnect", written);
  else if (socket.connecting) socket.once("connect", written);
  else written();
}

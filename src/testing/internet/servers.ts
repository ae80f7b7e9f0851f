import { once } from "node:events";
import { createServer } from "node:http";
import { createSecureServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { TlsIdentity } from "./certificate.ts";
import type { NodeResponse, ServerRequest } from "./node-http.ts";
import type { RequestHandler } from "./request-handler.ts";

export interface Servers {
  /** The port that stands for port 443 of every host. */
  readonly tlsPort: number;
  /** The port that stands for port 80 of every host. */
  readonly plainPort: number;
  close(): Promise<void>;
}

/** Two servers on loopback for all hosts: HTTP/2 and HTTP/1.1 over TLS, and plain HTTP/1.1. */
export async function startServers(
  handler: RequestHandler,
  { cert, key }: TlsIdentity,
  onFault: (error: Error) => void,
): Promise<Servers> {
  const answer = (isTls: boolean) => (request: ServerRequest, response: NodeResponse) => {
    // A client may disconnect at any time. With HTTP/2 the request emits the error, and without a listener the error
    // would end the thread.
    request.on("error", () => response.destroy());
    response.on("error", () => response.destroy());
    handler.serve(request, response, isTls).catch(onFault);
  };
  const plain = createServer(answer(false));
  const secure = createSecureServer({ cert, key, allowHTTP1: true }, answer(true));
  const open = new Set<Socket | ServerHttp2Session>();
  const watch = (connection: Socket | ServerHttp2Session) => {
    open.add(connection);
    connection.once("close", () => open.delete(connection));
    connection.on("error", () => connection.destroy());
  };
  plain.on("connection", watch);
  secure.on("connection", watch);
  secure.on("session", watch);
  await Promise.all([plain, secure].map(server => once(server.listen(0, "127.0.0.1"), "listening")));
  return {
    tlsPort: (secure.address() as AddressInfo).port,
    plainPort: (plain.address() as AddressInfo).port,
    close: async () => {
      const closed = [plain, secure].map(server => new Promise(resolve => server.close(resolve)));
      for (const connection of open) connection.destroy();
      await Promise.all(closed);
    },
  };
}

import { once } from "node:events";
import { createServer } from "node:http";
import { createSecureServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { Identity } from "./certificate.ts";
import type { NodeRequest, NodeResponse } from "./node-http.ts";
import type { RequestHandler } from "./request-handler.ts";

export interface Servers {
  /** Where everything of port 443 is answered. */
  readonly tlsPort: number;
  /** Where everything of port 80 is answered. */
  readonly plainPort: number;
  close(): Promise<void>;
}

/** Two servers on loopback that speak for all hosts: HTTP/2 and HTTP/1.1 over TLS, and plain HTTP/1.1. */
export async function startServers(
  handler: RequestHandler,
  { cert, key }: Identity,
  onFault: (error: Error) => void,
): Promise<Servers> {
  const answer = (isTls: boolean) => (request: NodeRequest, response: NodeResponse) => {
    // A client that goes away while it is answered is no fault of ours. Of HTTP/2 it is the request that hears of it,
    // and an error that nobody hears ends the thread.
    request.on("error", () => response.destroy());
    response.on("error", () => response.destroy());
    handler.serve(request, response, isTls).catch(onFault);
  };
  const plain = createServer(answer(false));
  const secure = createSecureServer({ cert, key, allowHTTP1: true }, answer(true));
  const open = new Set<Socket | ServerHttp2Session>();
  const watch = (one: Socket | ServerHttp2Session) => {
    open.add(one);
    one.once("close", () => open.delete(one));
    one.on("error", () => one.destroy());
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
      for (const one of open) one.destroy();
      await Promise.all(closed);
    },
  };
}

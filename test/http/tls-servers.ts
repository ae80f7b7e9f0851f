import { once } from "node:events";
import { createSecureServer } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer as createNetServer, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { tlsFixture } from "./kit.ts";

/** An HTTP/2 server that answers 200 and ends the first session after its third request. */
export async function goingAwayServer(t: TestContext) {
  const seen = { port: 0, requests: 0 };
  const server = createSecureServer(tlsFixture());
  server.on("session", session => {
    session.on("error", () => undefined);
    t.after(() => session.destroy());
  });
  server.on("stream", stream => {
    seen.requests += 1;
    stream.on("error", () => undefined);
    stream.respond({ ":status": 200 });
    stream.end("ok");
    if (seen.requests !== 3) return;
    stream.session?.goaway(0, stream.id);
    stream.session?.close();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return Object.assign(seen, { port: (server.address() as AddressInfo).port });
}

/** A TLS port that accepts connections and does not answer the handshake until `speak` is called. */
export async function silentTlsServer(t: TestContext) {
  const sockets: Socket[] = [];
  const paths: (string | undefined)[] = [];
  let isSilent = true;
  const secure = createHttpsServer(tlsFixture(), (request, response) => {
    paths.push(request.url);
    response.end("ok");
  });
  const server = createNetServer({ pauseOnConnect: true }, socket => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    t.after(() => socket.destroy());
    if (!isSilent) secure.emit("connection", socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const speak = () => {
    isSilent = false;
    for (const socket of sockets) secure.emit("connection", socket);
  };
  return { port: (server.address() as AddressInfo).port, sockets, paths, speak };
}

/** Network options that connect https://example.org to a port of this machine. */
export function exampleAt(port: number) {
  return { tls: { ca: tlsFixture().cert }, connectTo: [`example.org:443:127.0.0.1:${port}`] };
}

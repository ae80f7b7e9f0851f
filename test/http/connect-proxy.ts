import { once } from "node:events";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import type { TestContext } from "node:test";

/** A proxy that connects every CONNECT to one server, gives one answer to requests without it, and records the targets. */
export async function startProxy(t: TestContext, port: number, answer = "by the proxy") {
  const targets: string[] = [];
  const proxy = http.createServer((request, response) => {
    targets.push(request.url ?? "");
    response.end(answer);
  });
  proxy.on("connect", (request, socket) => {
    targets.push(request.url ?? "");
    const server = net.connect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      server.pipe(socket).pipe(server);
    });
    server.on("error", () => socket.destroy());
    socket.on("error", () => server.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  t.after(() => proxy.close());
  t.after(() => proxy.closeAllConnections());
  return { url: `http://user:secret@127.0.0.1:${(proxy.address() as AddressInfo).port}`, targets };
}

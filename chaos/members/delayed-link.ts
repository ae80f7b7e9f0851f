import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { systemTime } from "../../src/time/system-time.ts";

/** A TCP proxy in front of a server that delays all data by `delayMs` in each direction. */
export async function openDelayedLink(port: number, delayMs: number): Promise<{ port: number; close(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer(near => {
    const far = connect(port, "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      // Timers of the same length fire in their order, so the bytes stay in order.
      from.on("data", data => systemTime.setTimer(delayMs, () => to.write(data)));
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port: linkPort } = server.address() as AddressInfo;
  return {
    port: linkPort,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

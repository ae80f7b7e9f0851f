import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A proxy that can drop the connection at the moment a reply comes back. */
export class BreakableLink {
  /** The port that new connections lead to. */
  target: number;
  /** While true, the next reply ends the connection. */
  isCut = false;
  /** How many calls of a Redis script have passed. */
  scriptCalls = 0;
  #repliesLeft: number | undefined;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  static async to(port: number): Promise<BreakableLink> {
    const link = new BreakableLink(port);
    link.#server.listen(0, "127.0.0.1");
    await once(link.#server, "listening");
    return link;
  }

  private constructor(port: number) {
    this.target = port;
    this.#server = createServer(near => {
      const far = connect(this.target, "127.0.0.1");
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket
          .on("error", () => undefined)
          .on("close", () => {
            near.destroy();
            far.destroy();
          });
      }
      near.on("data", data => {
        this.scriptCalls += data.toString("latin1").split("EVALSHA").length - 1;
        far.write(data);
      });
      far.on("data", data => (this.#isLost() ? near.destroy() : near.write(data)));
    });
  }

  /** Lets so many replies through, loses the next one with its connection, and works again. */
  cutAfterReplies(count: number): void {
    this.#repliesLeft = count;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  #isLost(): boolean {
    if (this.#repliesLeft === undefined) return this.isCut;
    this.#repliesLeft -= 1;
    if (this.#repliesLeft >= 0) return false;
    this.#repliesLeft = undefined;
    return true;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

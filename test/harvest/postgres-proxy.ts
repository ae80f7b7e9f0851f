/** A TCP proxy before a PostgreSQL server, for tests that lose bytes on the way. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

type Filter = (bytes: Buffer) => Buffer | undefined;

const PASS: Filter = bytes => bytes;

export class PostgresProxy {
  /** What is passed on of the bytes that a client sends. @default all */
  toServer = PASS;
  /** As `toServer`, for the bytes of the server. */
  toClient = PASS;
  /** Called with each new connection. Returns false to refuse it. */
  accepts: () => boolean = () => true;
  readonly #server = createServer(client => this.#join(client));
  readonly #sockets = new Set<Socket>();
  readonly #target: number;

  static async start(target: number): Promise<PostgresProxy> {
    const proxy = new PostgresProxy(target);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  private constructor(target: number) {
    this.#target = target;
  }

  /** The URL of a manifest, through the proxy. */
  urlOf(url: string): string {
    return url.replace(`:${this.#target}/`, `:${(this.#server.address() as AddressInfo).port}/`);
  }

  /** Breaks all connections. */
  break(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.break();
    await once(this.#server, "close");
  }

  #join(client: Socket): void {
    if (!this.accepts()) {
      client.destroy();
      return;
    }
    const server = connect(this.#target, "127.0.0.1");
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
    client.on("data", bytes => passOn(server, this.toServer(bytes)));
    server.on("data", bytes => passOn(client, this.toClient(bytes)));
  }
}

function passOn(socket: Socket, bytes: Buffer | undefined): void {
  if (bytes !== undefined) socket.write(bytes);
}

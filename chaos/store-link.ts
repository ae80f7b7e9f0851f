import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** One connection through the proxy. */
interface Pair {
  readonly near: Socket;
  far: Socket | undefined;
  readonly port: number;
}

/**
 * The connection of one process to the servers of the store: a TCP proxy in front of each port. It can reset all
 * connections, hold all data back as a partition does, or delay the data.
 */
export class StoreLink {
  readonly #servers: Server[] = [];
  readonly #pairs = new Set<Pair>();
  /** Also those whose other half is closed already. */
  readonly #sockets = new Set<Socket>();
  readonly #routes: Record<string, number> = {};
  #state: "open" | "cut" | "silent" = "open";
  #delayMs = 0;

  static async to(ports: readonly number[]): Promise<StoreLink> {
    const link = new StoreLink();
    for (const port of ports) {
      const server = createServer(near => link.#accept(near, port)).listen(0, "127.0.0.1");
      await once(server, "listening");
      link.#servers.push(server);
      link.#routes[port] = (server.address() as AddressInfo).port;
    }
    return link;
  }

  /** For CHAOS_ROUTES of the process. */
  get routes(): Readonly<Record<string, number>> {
    return this.#routes;
  }

  /** Resets all connections, and new ones as soon as they are opened. */
  cut(): void {
    this.#state = "cut";
    for (const { near, far } of this.#pairs) {
      near.resetAndDestroy();
      far?.resetAndDestroy();
    }
  }

  /** Nothing passes. What was sent meanwhile arrives when the link is healed, as after a partition. */
  silence(): void {
    this.#state = "silent";
    for (const { near, far } of this.#pairs) {
      near.pause();
      far?.pause();
    }
  }

  delay(ms: number): void {
    this.#delayMs = ms;
  }

  heal(): void {
    this.#state = "open";
    this.#delayMs = 0;
    for (const pair of this.#pairs) {
      if (pair.far === undefined) this.#join(pair);
      pair.near.resume();
      pair.far?.resume();
    }
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    for (const server of this.#servers) server.close();
  }

  #accept(near: Socket, port: number): void {
    const pair: Pair = { near, far: undefined, port };
    this.#watch(near).on("close", () => this.#closed(pair));
    this.#pairs.add(pair);
    if (this.#state === "cut") near.resetAndDestroy();
    else if (this.#state === "silent") near.pause();
    else this.#join(pair);
  }

  #join(pair: Pair): void {
    if (pair.near.destroyed) return;
    const far = this.#watch(connect(pair.port, "127.0.0.1"));
    pair.far = far;
    far.on("close", () => pair.near.destroy());
    this.#pass(pair.near, far);
    this.#pass(far, pair.near);
  }

  #watch(socket: Socket): Socket {
    this.#sockets.add(socket);
    return socket.on("error", () => undefined).on("close", () => this.#sockets.delete(socket));
  }

  /** One queue for each direction, so that bytes keep their order when the delay changes. */
  #pass(from: Socket, to: Socket): void {
    const queue: { readonly dueMs: number; readonly chunk: Buffer }[] = [];
    const flush = () => {
      for (let first = queue[0]; first !== undefined; first = queue[0]) {
        const leftMs = first.dueMs - performance.now();
        if (leftMs > 0) {
          setTimeout(flush, leftMs);
          return;
        }
        queue.shift();
        if (!to.destroyed) to.write(first.chunk);
      }
    };
    from.on("data", (chunk: Buffer) => {
      queue.push({ dueMs: performance.now() + this.#delayMs, chunk });
      if (queue.length === 1) flush();
    });
  }

  #closed(pair: Pair): void {
    this.#pairs.delete(pair);
    // A connection that its process has closed during a partition still delivers what was sent before.
    if (this.#state === "open") pair.far?.end().resume();
    else pair.far?.destroy();
  }
}

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** A request as the server saw it. */
export interface SeenRequest {
  readonly host: string;
  readonly method: string;
  readonly path: string;
  /** The first request of its connection. */
  readonly isNewConnection: boolean;
  readonly isConditional: boolean;
  readonly traceparent: string | undefined;
  /** Undefined when it was not answered. */
  status: number | undefined;
}

/** How a path behaves: the first part of it. The second part makes it unique. */
export const BEHAVIOURS = [
  ...["ok", "fresh", "etag", "swr", "swrfail", "sie", "flaky", "busy", "throttled", "bad", "missing"],
  ...["hold", "endless", "cut", "torn", "slow"],
] as const;
export type Behaviour = (typeof BEHAVIOURS)[number];

/** A real server under several host names that records every request. */
export class LedgerServer {
  readonly seen: SeenRequest[] = [];
  /** Requests that are not answered completely until the client or `release` ends them. */
  readonly #open = new Map<ServerResponse, SeenRequest>();
  readonly #counts = new Map<string, number>();
  readonly #known = new WeakSet<Socket>();
  readonly #released = new Set<string>();
  readonly #server: Server;
  #waiters: { readonly path: string; readonly resolve: () => void }[] = [];

  constructor() {
    this.#server = createServer((request, response) => this.#handle(request, response));
    this.#server.keepAliveTimeout = 0;
  }

  async listen(): Promise<number> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Responses that were sent, or whose connection was closed. */
  ended = 0;

  /** Resolves when a request for this path has arrived. */
  arrived(path: string): Promise<void> {
    if (this.seen.some(request => request.path === path)) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.push({ path, resolve });
    return promise;
  }

  /** Answers the requests of a path that are held, and those that come later. */
  release(path: string): void {
    this.#released.add(path);
    for (const [response, seen] of this.#open) {
      if (seen.path !== path) continue;
      this.#open.delete(response);
      answerSlow(seen, response);
    }
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? "";
    const host = (request.headers.host ?? "").replace(/:.*/, "");
    const { socket } = request;
    const seen: SeenRequest = {
      host,
      method: request.method ?? "",
      path,
      isNewConnection: !this.#known.has(socket),
      isConditional: request.headers["if-none-match"] !== undefined,
      traceparent: request.headers["traceparent"] as string | undefined,
      status: undefined,
    };
    this.#known.add(socket);
    this.seen.push(seen);
    const number = (this.#counts.get(`${host}${path}`) ?? 0) + 1;
    this.#counts.set(`${host}${path}`, number);
    request.resume();
    response.on("close", () => {
      this.ended += 1;
    });
    this.#behave(path, number, seen, response);
    const due = this.#waiters.filter(waiter => waiter.path === path);
    this.#waiters = this.#waiters.filter(waiter => waiter.path !== path);
    for (const { resolve } of due) resolve();
  }

  #behave(path: string, number: number, seen: SeenRequest, response: ServerResponse): void {
    const answer = (status: number, headers: Record<string, string> = {}) => {
      seen.status = status;
      response.writeHead(status, headers).end("body");
    };
    const [, behaviour = "", target = "", then = "", ...rest] = path.split("/");
    const plain = PLAIN[behaviour];
    const control = CACHED[behaviour];
    if (plain !== undefined) answer(...plain(number));
    else if (control !== undefined) {
      const isFailing = FAILS_LATER.has(behaviour) && number > 1;
      if (isFailing) answer(503);
      else answer(seen.isConditional ? 304 : 200, { etag: '"1"', "cache-control": control });
    } else if (behaviour === "to") answer(302, { location: `http://${target}/${then}/${rest.join("/")}` });
    else this.#behaveBadly(behaviour, path, seen, response);
  }

  #behaveBadly(behaviour: string, path: string, seen: SeenRequest, response: ServerResponse): void {
    if (behaviour === "cut") {
      response.socket?.destroy();
      return;
    }
    // Node sends no body for a HEAD, so nothing can be torn.
    if (behaviour === "torn" && seen.method === "HEAD") {
      answerSlow(seen, response);
      return;
    }
    if (behaviour === "torn" || behaviour === "endless") seen.status = 200;
    if (behaviour === "torn")
      response.writeHead(200, { "content-length": "100" }).write("ten bytes.", () => response.socket?.destroy());
    else if (this.#released.has(path)) answerSlow(seen, response);
    else {
      this.#hold(seen, response);
      if (behaviour === "endless") response.write("the beginning");
    }
  }

  #hold(seen: SeenRequest, response: ServerResponse): void {
    this.#open.set(response, seen);
    response.on("close", () => this.#open.delete(response));
  }
}

type Answer = readonly [status: number, headers?: Record<string, string>];

const PLAIN: Readonly<Record<string, (number: number) => Answer>> = {
  ok: () => [200, { "cache-control": "no-store" }],
  flaky: number => [number <= 2 ? 503 : 200],
  busy: number => (number === 1 ? [429, { "retry-after": "2" }] : [200]),
  throttled: () => [429],
  bad: () => [500],
  missing: () => [404],
};

const CACHED: Readonly<Record<string, string>> = {
  fresh: "max-age=100000",
  etag: "max-age=0",
  swr: "max-age=0, stale-while-revalidate=100000",
  swrfail: "max-age=0, stale-while-revalidate=100000",
  sie: "max-age=0, stale-if-error=100000",
};
const FAILS_LATER: ReadonlySet<string> = new Set(["swrfail", "sie"]);

function answerSlow(seen: SeenRequest, response: ServerResponse): void {
  seen.status = 200;
  response.writeHead(200, { "cache-control": "max-age=100000" }).end("slow");
}

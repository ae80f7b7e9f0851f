import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { parseRates } from "../core/limits/rate.ts";
import { systemTime } from "../time/system-time.ts";
import { EventLoopTurns } from "./event-loop-turns.ts";

/** Options of `startStrictServer`. */
export interface StrictServerOptions {
  /** The limit, such as `10/SECOND` or `10/SECOND+100/MINUTE`. It holds in any window, wherever the window begins. */
  readonly rate: string;
  /** The port on 127.0.0.1. @default 0: a free one */
  readonly port?: number | undefined;
  /**
   * Writes and ends the response to an admitted request.
   * @default status 200 with the path as text, cacheable for a minute
   */
  readonly answer?: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
}

/** A running strict server. */
export interface StrictServer {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  /** When each request arrived, rejected ones included, in milliseconds of the monotonic clock. */
  readonly arrivalsMs: readonly number[];
  /** How many requests were answered with 429. */
  readonly rejected: number;
  /** The largest number of arrivals in any window of the first rate, rejected ones included. */
  readonly busiest: number;
  /** Closes the server and all its connections. */
  close(): Promise<void>;
}

/**
 * Starts an HTTP server on 127.0.0.1 that enforces a limit exactly, in any window, and answers every request above it
 * with 429. Rejected requests count in the window too. It keeps the process alive until `close`.
 *
 * The server often runs in the process of its client. If that process is blocked, or gets no CPU time, the server notices
 * a request later than it arrived. Such a request counts from the earliest moment at which it may have arrived, so that
 * only requests that are certainly above the limit are rejected.
 */
export async function startStrictServer({ rate, port = 0, answer = echo }: StrictServerOptions): Promise<StrictServer> {
  const rates = parseRates(rate);
  const longestMs = Math.max(...rates.map(({ windowUs }) => windowUs / 1000));
  const arrivalsMs: number[] = [];
  let recentMs: number[] = [];
  let rejected = 0;
  const turns = new EventLoopTurns();
  turns.start();
  const server = createServer((request, response) => {
    const nowMs = systemTime.monotonicUs() / 1000;
    recentMs = recentMs.filter(ms => ms > nowMs - longestMs);
    const isFull = rates.some(
      ({ limit, windowUs }) => recentMs.filter(ms => ms > nowMs - windowUs / 1000).length >= limit,
    );
    recentMs.push(turns.earliestArrivalMs);
    arrivalsMs.push(nowMs);
    if (!isFull) {
      answer(request, response);
      return;
    }
    rejected += 1;
    response.writeHead(429, { "content-type": "text/plain" }).end("too many requests\n");
  });
  // A client that is blocked for seconds must not find its connections closed.
  server.keepAliveTimeout = 0;
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivalsMs,
    get rejected() {
      return rejected;
    },
    get busiest() {
      return busiestWindow(arrivalsMs, (rates[0]?.windowUs ?? 0) / 1000);
    },
    close: async () => {
      turns.stop();
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
}

/** The arrivals are sorted, so one pass with a sliding window is enough. */
function busiestWindow(arrivalsMs: readonly number[], windowMs: number): number {
  let from = 0;
  let busiest = 0;
  for (const [index, ms] of arrivalsMs.entries()) {
    while ((arrivalsMs[from] ?? ms) <= ms - windowMs) from += 1;
    busiest = Math.max(busiest, index - from + 1);
  }
  return busiest;
}

function echo(request: IncomingMessage, response: ServerResponse): void {
  response.setHeader("cache-control", "max-age=60").setHeader("content-type", "text/plain").end(`${request.url}\n`);
}

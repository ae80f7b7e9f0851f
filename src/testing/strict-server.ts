import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { parseRates } from "../core/limits/rate.ts";
import { systemTime } from "../time/system-time.ts";

export interface StrictServerOptions {
  /** What it allows in any window: `10/SECOND`, `10/SECOND+100/MINUTE`. */
  readonly rate: string;
  /** @default any that is free */
  readonly port?: number | undefined;
  /** What it says to those it lets in. @default 200, the path as text, fresh for a minute */
  readonly answer?: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
}

export interface StrictServer {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  /** When each request came, in milliseconds of its own clock; those it rejected too. */
  readonly arrivalsMs: readonly number[];
  /** How many it has answered with 429. */
  readonly rejected: number;
  /** The most that ever came in one window of its first rate, wherever that begins. */
  readonly busiest: number;
  close(): Promise<void>;
}

/** A server on loopback that enforces its limit exactly, in any window, and rejects every request beyond it. */
export async function startStrictServer({ rate, port = 0, answer = echo }: StrictServerOptions): Promise<StrictServer> {
  const rates = parseRates(rate);
  const longestMs = Math.max(...rates.map(({ windowUs }) => windowUs / 1000));
  const arrivalsMs: number[] = [];
  let recentMs: number[] = [];
  let rejected = 0;
  const server = createServer((request, response) => {
    const nowMs = systemTime.monotonicUs() / 1000;
    recentMs = recentMs.filter(ms => ms > nowMs - longestMs);
    const isFull = rates.some(
      ({ limit, windowUs }) => recentMs.filter(ms => ms > nowMs - windowUs / 1000).length >= limit,
    );
    recentMs.push(nowMs);
    arrivalsMs.push(nowMs);
    if (!isFull) {
      answer(request, response);
      return;
    }
    rejected += 1;
    response.writeHead(429, { "content-type": "text/plain" }).end("too many requests\n");
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivalsMs,
    get rejected() {
      return rejected;
    },
    get busiest() {
      return most(arrivalsMs, (rates[0]?.windowUs ?? 0) / 1000);
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
}

/** The arrivals are in order, so that the window slides over them once. */
function most(arrivalsMs: readonly number[], windowMs: number): number {
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

/**
 * A service that takes five requests in any second and answers 429 to the others, for the examples to call.
 *
 *     node examples/server.ts [port]
 *
 * `/works` is never the same twice; `/types` may be kept for a minute; `/stats` says how its callers behaved.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const LIMIT = 5;
const WINDOW_MS = 1000;

export interface Stats {
  /** What came, the rejected included. */
  readonly requests: number;
  readonly rejected: number;
  /** The most that ever came in one second, wherever it begins. */
  readonly busiestSecond: number;
}

export interface ExampleServer {
  readonly origin: string;
  stats(): Stats;
  close(): void;
}

export async function startServer(port = 0): Promise<ExampleServer> {
  const arrivalsMs: number[] = [];
  const acceptedMs: number[] = [];
  let rejected = 0;
  const stats = () => ({ requests: arrivalsMs.length, rejected, busiestSecond: busiest(arrivalsMs) });
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    response.setHeader("content-type", "application/json");
    if (pathname === "/stats") {
      response.end(JSON.stringify(stats()));
      return;
    }
    const nowMs = performance.now();
    arrivalsMs.push(nowMs);
    if (acceptedMs.filter(atMs => nowMs - atMs < WINDOW_MS).length >= LIMIT) {
      rejected += 1;
      response.writeHead(429, { "retry-after": "1" }).end(JSON.stringify({ message: "too many requests" }));
      return;
    }
    acceptedMs.push(nowMs);
    response.setHeader("cache-control", pathname === "/types" ? "max-age=60" : "no-store");
    response.end(JSON.stringify({ message: { path: request.url, number: arrivalsMs.length } }));
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stats,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function busiest(arrivalsMs: readonly number[]): number {
  const counts = arrivalsMs.map(
    fromMs => arrivalsMs.filter(atMs => atMs >= fromMs && atMs - fromMs < WINDOW_MS).length,
  );
  return Math.max(0, ...counts);
}

if (process.argv[1] === import.meta.filename) {
  const { origin } = await startServer(Number(process.argv[2] ?? 0));
  console.log(origin);
}

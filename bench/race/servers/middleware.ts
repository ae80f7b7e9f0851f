/**
 * A server of Express with the rate limit of a library, in its own process: `middleware.ts <setup as JSON>`. Sends its
 * port, and a report on request.
 */
import type { AddressInfo } from "node:net";
import { ArrivalLog } from "../arrivals.ts";
import type { RaceLimits } from "../limits.ts";
import { roleOfPath, WARM_PATH } from "../paths.ts";
import type { Middleware } from "../scenario.ts";

interface MiddlewareSetup {
  readonly library: Middleware["kind"];
  readonly limits: RaceLimits;
}

/** The parts of Express that are used; its packages are only installed for the benchmarks. */
interface ExpressResponse {
  status(code: number): ExpressResponse;
  set(name: string, value: string): ExpressResponse;
  json(value: unknown): void;
  on(event: "finish", listener: () => void): void;
  readonly statusCode: number;
}
type Handler = (request: { readonly path: string }, response: ExpressResponse, next: () => void) => void;
interface ExpressApp {
  use(handler: Handler): void;
  get(path: string, handler: Handler): void;
  listen(port: number, host: string, onListening: () => void): { address(): AddressInfo; keepAliveTimeout: number };
}

const { library, limits } = JSON.parse(process.argv[2] ?? "{}") as MiddlewareSetup;
const { limit = 0, windowMs = 0 } = limits.metadata[0] ?? {};
const { default: express } = (await import("express" as string)) as { readonly default: () => ExpressApp };
const log = new ArrivalLog();
const app = express();

app.get(WARM_PATH, (_, response) => response.json({ status: "ok" }));
app.use((request, response, next) => {
  const atMs = performance.now();
  response.on("finish", () => log.add({ atMs, role: roleOfPath(request.path), status: response.statusCode }));
  next();
});
app.use(await limiterOf(library));
app.use((_, response) => response.json({ status: "ok" }));
const server = app.listen(0, "127.0.0.1", () => process.send?.(server.address().port));
server.keepAliveTimeout = 120_000;
process.on("message", () => process.send?.(log.report(limits)));
process.once("disconnect", () => process.exit());

/** As in the first example of each library's documentation. */
async function limiterOf(name: Middleware["kind"]): Promise<Handler> {
  if (name === "express-rate-limit") {
    const { rateLimit } = (await import("express-rate-limit" as string)) as {
      readonly rateLimit: (options: object) => Handler;
    };
    return rateLimit({ windowMs, limit, standardHeaders: "draft-8", legacyHeaders: false });
  }
  const { RateLimiterMemory } = (await import("rate-limiter-flexible" as string)) as {
    readonly RateLimiterMemory: new (options: object) => { consume(key: string): Promise<unknown> };
  };
  const limiter = new RateLimiterMemory({ points: limit, duration: windowMs / 1000 });
  return (_, response, next) => {
    limiter.consume("all").then(
      () => next(),
      () => response.status(429).json({ status: "error" }),
    );
  };
}

/**
 * A service that takes five requests in any second and answers 429 to the others, for the examples to call.
 *
 *     node examples/server.ts [port]
 *
 * `/works` is never the same twice; `/types` may be kept for a minute.
 */
import { type StrictServer, startStrictServer } from "docstokg/testing";

export function startServer(port = 0): Promise<StrictServer> {
  return startStrictServer({
    rate: "5/SECOND",
    port,
    answer: ({ url = "/" }, response) => {
      response.setHeader("content-type", "application/json");
      response.setHeader("cache-control", url === "/types" ? "max-age=60" : "no-store");
      response.end(JSON.stringify({ message: { path: url } }));
    },
  });
}

if (process.argv[1] === import.meta.filename) {
  const { origin } = await startServer(Number(process.argv[2] ?? 0));
  console.log(origin);
}

/**
 * A service for the examples. It accepts five requests in any second and answers 429 to the others.
 *
 *     node examples/server.ts [port]
 *
 * `/works` may not be cached; `/types` may be cached for a minute.
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

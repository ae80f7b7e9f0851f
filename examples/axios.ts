/**
 * axios through a hub, with its fetch adapter. Its default adapter in Node uses `node:http`: a hub covers that with
 * `hub.install()` or `hub.agents()`, without cache and retries. `"User-Agent": false` removes the header of axios, so that
 * the hub sends its own with a contact address.
 *
 *     node examples/axios.ts [origin]
 */
import axios from "axios";
import { createHub } from "docstokg";

const origin = process.argv[2] ?? "https://api.crossref.org";
const limits = { rates: "5/SECOND", max_delay_ms: 60_000 };
const hub = await createHub({
  policy: { ratelimits: { hosts: { [new URL(origin).hostname]: { metadata: limits } } } },
});
const api = axios.create({
  baseURL: origin,
  adapter: "fetch",
  env: { fetch: hub.fetch },
  headers: { "User-Agent": false },
});

const started = performance.now();
const calls = Array.from({ length: 12 }, async (_, offset) => {
  const { status } = await api.get("/works", { params: { rows: 1, offset } });
  return status;
});
const statuses = await Promise.all(calls);
const seconds = ((performance.now() - started) / 1000).toFixed(1);
console.log(`${statuses.length} calls in ${seconds} s, answered with ${[...new Set(statuses)]}`);

for (const time of ["first", "second"]) {
  const { headers } = await api.get("/types");
  console.log(`the ${time} time: ${headers["cache-status"]}`);
}

await hub.close();

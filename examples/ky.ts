/**
 * ky through a hub. The hub retries by itself, so the retries of ky are switched off. Its timeout of ten seconds is
 * switched off too: it would also count the time that a call waits in the queue.
 *
 *     node examples/ky.ts [origin]
 */
import { createHub } from "docstokg";
import ky from "ky";

const origin = process.argv[2] ?? "https://api.crossref.org";
const limits = { rates: "5/SECOND", max_delay_ms: 60_000 };
const hub = await createHub({
  policy: { ratelimits: { hosts: { [new URL(origin).hostname]: { metadata: limits } } } },
});
const api = ky.create({ prefix: origin, fetch: hub.fetch, retry: 0, timeout: false });

const started = performance.now();
const calls = Array.from({ length: 12 }, async (_, offset) => {
  const response = await api.get("works", { searchParams: { rows: 1, offset } });
  await response.json();
  return response.status;
});
const statuses = await Promise.all(calls);
const seconds = ((performance.now() - started) / 1000).toFixed(1);
console.log(`${statuses.length} calls in ${seconds} s, answered with ${[...new Set(statuses)]}`);

for (const time of ["first", "second"]) {
  const response = await api.get("types");
  await response.json();
  console.log(`the ${time} time: ${response.headers.get("cache-status")}`);
}

await hub.close();

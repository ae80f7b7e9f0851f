/**
 * fetch within a rate limit: fifteen calls start together, and the hub sends five per second. The service, which
 * accepts five per second, refuses none.
 *
 *     node examples/fetch.ts [origin]
 */
import { createHub, RateLimitExceeded } from "docstokg";

const origin = process.argv[2] ?? "https://api.crossref.org";
const limits = { rates: "5/SECOND", max_delay_ms: 60_000 };
const hub = await createHub({
  policy: { ratelimits: { hosts: { [new URL(origin).hostname]: { metadata: limits } } } },
});

const started = performance.now();
const calls = Array.from({ length: 15 }, async (_, offset) => {
  const response = await hub.fetch(`${origin}/works?rows=1&offset=${offset}`);
  await response.json();
  return response.status;
});

// A call that may not wait is refused with the time of the next free slot. No request is sent, and no limit is charged.
try {
  await hub.fetch(`${origin}/works?rows=1&offset=15`, { maxWaitMs: 0 });
} catch (error) {
  if (!(error instanceof RateLimitExceeded)) throw error;
  console.log(`not sent: ${error.message}`);
}

const statuses = await Promise.all(calls);
const seconds = ((performance.now() - started) / 1000).toFixed(1);
console.log(`${statuses.length} calls in ${seconds} s, answered with ${[...new Set(statuses)]}`);

for (const time of ["first", "second"]) {
  const response = await hub.fetch(`${origin}/types`);
  await response.json();
  console.log(`the ${time} time: ${response.headers.get("cache-status")}`);
}

await hub.close();

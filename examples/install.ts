/**
 * A hub for the whole process: every fetch goes through it, also the calls of libraries that are not written for it.
 *
 *     node examples/install.ts [origin]
 */
import { createHub } from "docstokg";

const origin = process.argv[2] ?? "https://api.crossref.org";
const hub = await createHub({
  policy: { ratelimits: { hosts: { [new URL(origin).hostname]: { metadata: { rates: "5/SECOND" } } } } },
});
const uninstall = hub.install();

const started = performance.now();
const calls = Array.from({ length: 12 }, async (_, offset) => {
  const response = await fetch(`${origin}/works?rows=1&offset=${offset}`);
  await response.json();
  return response.status;
});
const statuses = await Promise.all(calls);
const seconds = ((performance.now() - started) / 1000).toFixed(1);
console.log(`${statuses.length} calls in ${seconds} s, answered with ${[...new Set(statuses)]}`);

for (const time of ["first", "second"]) {
  const response = await fetch(`${origin}/types`);
  await response.json();
  console.log(`the ${time} time: ${response.headers.get("cache-status")}`);
}

// After this, fetch is the original fetch of Node again.
uninstall();
await hub.close();

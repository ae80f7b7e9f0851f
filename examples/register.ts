/**
 * A program without any docstokg code. The --import flag sends its fetch calls through a hub:
 *
 *     DOCSTOKG_RLIMITS="api.crossref.org:metadata=rates:5/SECOND" \
 *       node --import docstokg/register examples/register.ts [origin]
 */
const origin = process.argv[2] ?? "https://api.crossref.org";

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

export {};

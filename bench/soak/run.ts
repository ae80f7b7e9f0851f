/**
 * `npm run soak`: tests that need the real clock and a quiet machine, one after the other. Each prints its numbers and
 * compares them with the guarantees. `npm test` checks the same laws by order and counts, also on a busy machine.
 */
import { globSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import { run } from "node:test";
import { spec } from "node:test/reporters";

const asked = process.argv.slice(2);
const files = asked.length > 0 ? asked : globSync(`${import.meta.dirname}/*.soak.ts`).sort();
const events = run({ files, concurrency: 1 });
events.on("test:fail", () => {
  process.exitCode = 1;
});
await pipeline(events, new spec(), process.stdout, { end: false });

/**
 * `npm run soak`: what needs the real clock and a quiet machine, one after the other. Each part prints its figures and
 * compares them with what is promised. `npm test` judges the same laws by what a busy machine cannot change.
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

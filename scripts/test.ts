/**
 * Runs the tests: `npm test`, or `npm test -- src/core/rate.test.ts …` for some of them.
 * Files named `*.alone.test.ts` measure what reaches a server, and when: they run after the others, which would keep
 * both cores busy, and one by one. In CI a skipped test is a failure unless `test/allowed-skips.json` gives a reason for it.
 */
import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { pipeline } from "node:stream/promises";
import { run } from "node:test";
import { spec } from "node:test/reporters";

const allowed: Record<string, string> = JSON.parse(
  readFileSync(new URL("../test/allowed-skips.json", import.meta.url), "utf8"),
);
const asked = process.argv.slice(2);
const files = asked.length > 0 ? asked : globSync(["src/**/*.test.ts", "test/**/*.test.ts"]).sort();
/** Nothing takes as long: a test that hangs is a test that fails. */
const PATIENCE_MS = 300_000;
const counts = { passed: 0, failed: 0, skipped: 0 };
const complaints: string[] = [];

const isAlone = (file: string) => file.endsWith(".alone.test.ts");
// One more than there are cores: many tests wait for a network or a process of their own.
await runAll(
  files.filter(file => !isAlone(file)),
  availableParallelism() + 1,
);
await runAll(files.filter(isAlone), 1);

for (const complaint of complaints) console.log(complaint);
if (counts.passed === 0) console.log("no test ran");
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
const skipsAreFailures = process.env["CI"] !== undefined && complaints.length > 0;
if (counts.failed > 0 || counts.passed === 0 || skipsAreFailures) process.exitCode = 1;

async function runAll(some: readonly string[], concurrency: number): Promise<void> {
  if (some.length === 0) return;
  const events = run({ files: some, concurrency, timeout: PATIENCE_MS });
  events.on("test:fail", ({ details }) => {
    // A file that fails counts once for itself and once for each test inside; only leaves are counted here.
    if (details.type !== "suite") counts.failed += 1;
  });
  events.on("test:pass", ({ name, skip, todo, details }) => {
    if (details.type === "suite") return;
    if (skip === undefined && todo === undefined) {
      counts.passed += 1;
      return;
    }
    counts.skipped += 1;
    const reason = allowed[name];
    if (reason === undefined) complaints.push(`skipped, and test/allowed-skips.json gives no reason: ${name}`);
  });
  await pipeline(events, new spec(), process.stdout, { end: false });
}

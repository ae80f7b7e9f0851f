/**
 * Runs the tests: `npm test`, or `npm test -- src/core/limits/rate.test.ts ...` for some of them.
 * In CI a skipped test is a failure, unless `test/allowed-skips.json` gives a reason.
 */
import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative } from "node:path";
import { pipeline } from "node:stream/promises";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { PROPERTY_SEED_VARIABLE, propertySeed } from "../test/property-seed.ts";
import { MISSING_VARIABLE, TOOLS, whyMissing } from "../test/tools.ts";

/** A test that takes longer has hung and fails. No test takes this long, even on a busy machine. */
const HANG_MS = 1_800_000;
const STDERR_CHARS_MAX = 2000;
/** The slowest files start first, so that none of them runs alone at the end. */
const FIRST = [/^(?:test\/)?sim\//, /schedules\.test\.ts$/, /^test\/(?:ontology|harvest|snippets|stores)/, /^test\//];

const root = join(import.meta.dirname, "..");
const allowed: Record<string, string> = JSON.parse(
  readFileSync(new URL("../test/allowed-skips.json", import.meta.url), "utf8"),
);
const named = process.argv.slice(2);
const files =
  named.length > 0
    ? named
    : // Packages that a test installs bring tests of their own.
      globSync(["src/**/*.test.ts", "{test,sim,chaos,mutation,fuzz}/**/*.test.ts"], {
        exclude: path => path.includes("node_modules"),
      }).sort(longestFirst);
// Each file is a process of its own, and many start others: the compiled modules are kept for all of them.
process.env["NODE_COMPILE_CACHE"] ??= join(root, "node_modules/.cache/compiled-modules");
const counts = { passed: 0, failed: 0, skipped: 0 };
const unexplained: string[] = [];
const failures: string[] = [];
/** The files with a failed test. */
const failedFiles = new Set<string>();
/** What the processes of the test files have printed, for a process that fails outside of its tests. */
const stderrs = new Map<string, string>();

const seed = propertySeed(process.env[PROPERTY_SEED_VARIABLE]);
process.env[PROPERTY_SEED_VARIABLE] = String(seed);
console.log(`Property tests use the seed ${seed} (${PROPERTY_SEED_VARIABLE}=random selects another seed).`);

const missing = TOOLS.filter(tool => whyMissing(tool) !== false).map(({ name }) => name);
process.env[MISSING_VARIABLE] = missing.join(",");
if (missing.length > 0) console.log(`MISSING: ${missing.join(", ")}. The tests that need it are skipped.\n`);

await runTests();

for (const failure of failures) console.log(failure);
for (const name of unexplained) console.log(`skipped without a reason in test/allowed-skips.json: ${name}`);
if (missing.length > 0) console.log(`MISSING: ${missing.join(", ")}. ${counts.skipped} tests were skipped.`);
if (counts.passed === 0) console.log("no test ran");
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
const skipsAreFailures = process.env["CI"] !== undefined && unexplained.length > 0;
if (counts.failed > 0 || counts.passed === 0 || skipsAreFailures) process.exitCode = 1;

async function runTests(): Promise<void> {
  const execArgv = ["--import", join(root, "test/before-file.ts")];
  // More than the number of cores, because many tests wait for the network or a child process.
  const events = run({ files, execArgv, concurrency: 2 * availableParallelism(), timeout: HANG_MS });
  events.on("test:fail", ({ name, file = "", details, nesting }) => {
    // A suite or file fails because of a test inside it, which is counted itself.
    if (details.type === "suite" || isFileOfFailedTest(name, file, nesting)) return;
    counts.failed += 1;
    failedFiles.add(file);
    const text = [errorText(details.error), isPath(name) ? (stderrs.get(file) ?? "").trimEnd() : ""].filter(Boolean);
    failures.push(`FAILED ${relative(root, file)}: ${name}\n${indented(text.join("\n"))}\n`);
  });
  events.on("test:stderr", ({ file, message }) => {
    stderrs.set(file, `${stderrs.get(file) ?? ""}${message}`.slice(-STDERR_CHARS_MAX));
  });
  events.on("test:pass", ({ name, skip, todo, details }) => {
    if (details.type === "suite") return;
    if (skip === undefined && todo === undefined) {
      counts.passed += 1;
      return;
    }
    counts.skipped += 1;
    if (allowed[name] === undefined) unexplained.push(name);
  });
  if (named.length > 0) {
    await pipeline(events, new spec(), process.stdout, { end: false });
    return;
  }
  let done = 0;
  events.on("test:summary", ({ file, counts: sum, duration_ms, success }) => {
    // A process that a test forks reports a summary of its own.
    if (file === undefined || !isPath(file)) return;
    done += 1;
    const seconds = (duration_ms / 1000).toFixed(1);
    const mark = success ? "ok    " : "FAILED";
    console.log(`[${done}/${files.length}] ${mark} ${relative(root, file)}: ${sum.tests} tests, ${seconds} s`);
  });
  for await (const _ of events);
}

/** A file is reported under its own path. It is a failure of its own only if its process fails outside of its tests. */
function isFileOfFailedTest(name: string, file: string, nesting: number): boolean {
  return nesting === 0 && failedFiles.has(file) && isPath(name);
}

function isPath(name: string): boolean {
  return files.some(file => name === file || name.endsWith(`/${file}`));
}

function errorText(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
}

function indented(text: string): string {
  return text
    .split("\n")
    .map(line => `  ${line}`)
    .join("\n");
}

function longestFirst(a: string, b: string): number {
  const rank = (file: string) => {
    const index = FIRST.findIndex(pattern => pattern.test(file));
    return index < 0 ? FIRST.length : index;
  };
  return rank(a) - rank(b) || (a < b ? -1 : 1);
}

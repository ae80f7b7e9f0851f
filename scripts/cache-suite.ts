/**
 * Runs the public test suite of HTTP caches (github.com/http-tests/cache-tests) against the cache of the hub, as it is
 * run against the private cache of a browser.
 * `npm run cache-suite -- <folder>`, where the folder is a clone of the suite; `--cache sqlite` tests the cache on disk,
 * `--list` prints the failed tests of every kind, and `--id <test>` runs one test and prints its requests.
 * Exits with 1 when a required test fails, or fewer optimal tests pass than OPTIMAL_MIN.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { createHub } from "../src/index.ts";
import { scriptArguments } from "./script-arguments.ts";

interface SuiteTest {
  readonly id: string;
  readonly name: string;
  readonly kind?: "required" | "optimal" | "check";
  readonly cdn_only?: boolean;
  readonly browser_skip?: boolean;
  dump?: boolean;
}
type Result = true | readonly [kind: string, message: string];
interface Runner {
  readonly runTests: (
    tests: readonly { readonly tests: readonly SuiteTest[] }[],
    isBrowser: boolean,
    base: string,
  ) => Promise<void>;
  readonly getResults: () => Readonly<Record<string, Result>>;
}

/** Optimal tests that must pass, of 77. docs/guides/hub.md names those that do not. */
const OPTIMAL_MIN = 70;

const { values, positionals } = scriptArguments({
  allowPositionals: true,
  options: {
    cache: { type: "string", default: "memory" },
    list: { type: "boolean", default: false },
    id: { type: "string" },
  },
});
const [folder] = positionals;
if (folder === undefined || (values.cache !== "memory" && values.cache !== "sqlite")) {
  console.error("usage: npm run cache-suite -- <folder of the suite> [--cache memory|sqlite] [--list] [--id <test>]");
  process.exit(2);
}
if (!existsSync(join(folder, "test-engine"))) {
  console.error(`${resolve(folder)} has no test-engine: clone https://github.com/http-tests/cache-tests there`);
  process.exit(2);
}

const runner: Runner = await importFromSuite("test-engine/client/runner.mjs");
const { default: suites }: { default: readonly { readonly tests: readonly SuiteTest[] }[] } =
  await importFromSuite("tests/index.mjs");
const chosen = suites.map(suite => ({
  ...suite,
  tests: suite.tests.filter(
    test => !test.cdn_only && !test.browser_skip && (values.id === undefined || test.id === values.id),
  ),
}));
if (values.id !== undefined) for (const { tests } of chosen) for (const test of tests) test.dump = true;

const scratch = await mkdtemp(join(tmpdir(), "docstokg-cache-suite-"));
const server = spawn(process.execPath, [resolve(folder, "test-engine/server/server.mjs")], {
  env: {
    ...process.env,
    npm_config_protocol: "http",
    npm_config_port: "0",
    npm_config_pidfile: join(scratch, "pid"),
  },
  stdio: ["ignore", "pipe", "inherit"],
});
try {
  const [line] = await once(createInterface(server.stdout), "line");
  const port = /:(\d+)\/$/.exec(String(line))?.[1];
  if (port === undefined) throw new Error(`the server of the suite reported no port: ${line}`);
  process.exitCode = await run(`http://localhost:${port}`);
} finally {
  server.kill();
  await rm(scratch, { recursive: true, force: true });
}

async function run(base: string): Promise<number> {
  await using hub = await createHub({
    env: {},
    cache: values.cache === "sqlite" ? `sqlite:${join(scratch, "cache.db")}` : "memory",
    // The suite counts the requests that its server gets, and tests the cache with failures of the server.
    retry: false,
    defaults: { staleOnDisconnect: true },
    policy: {
      ratelimits: { hosts: { localhost: { metadata: { rates: "100000/SECOND" } } } },
      breakers: {
        hosts: { localhost: { roles: { metadata: { fail_max: 1000 } } } },
        advanced: { rolling_window: { enabled: false } },
      },
    },
  });
  const original = globalThis.fetch;
  globalThis.fetch = hub.fetch as typeof fetch;
  try {
    await runner.runTests(chosen, true, base);
  } finally {
    globalThis.fetch = original;
  }
  const results = runner.getResults();
  const isPassed = (test: SuiteTest) => results[test.id] === true;
  const passed: Record<string, number> = {};
  for (const kind of ["required", "optimal", "check"] as const) {
    const tests = chosen.flatMap(suite => suite.tests).filter(test => (test.kind ?? "required") === kind);
    passed[kind] = tests.filter(isPassed).length;
    console.log(`${kind}: ${passed[kind]} of ${tests.length} pass`);
    if (kind === "check" && !values.list) continue;
    for (const test of tests) {
      const result = results[test.id];
      if (result !== true) console.log(`  ${test.id}: ${test.name} (${result?.[1] ?? "not run"})`);
    }
  }
  if (values.id !== undefined) return 0;
  const required = chosen.flatMap(suite => suite.tests).filter(test => (test.kind ?? "required") === "required");
  return passed["required"] === required.length && (passed["optimal"] ?? 0) >= OPTIMAL_MIN ? 0 : 1;
}

async function importFromSuite<Module>(path: string): Promise<Module> {
  return import(pathToFileURL(resolve(folder ?? "", path)).href);
}

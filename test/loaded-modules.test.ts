/** Which modules an entry of the package loads: each one costs every program time when it starts. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const root = resolve(import.meta.dirname, "..");

/** The URLs of the files that are loaded by importing an entry and then running some code. */
function loadedBy(entry: string, code = ""): readonly string[] {
  const hook = join(import.meta.dirname, "list-modules.ts");
  const url = pathToFileURL(join(root, "dist", `${entry}.js`));
  const program = `const entry = await import(${JSON.stringify(url)}); ${code}`;
  const args = ["--disable-warning=ExperimentalWarning", "--import", hook, "--input-type=module", "--eval", program];
  const env = Object.entries(process.env).filter(([name]) => !name.startsWith("DOCSTOKG_"));
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    encoding: "utf8",
    env: Object.fromEntries(env),
  });
  assert.equal(status, 0, stderr);
  return stdout.split("\n").filter(line => line.startsWith("file:"));
}

/** The packages among the loaded files. */
function packagesIn(files: readonly string[]): readonly string[] {
  const names = files.flatMap(file => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? []);
  return [...new Set(names)].sort();
}

test("the limiter and the breaker load neither zod nor yaml nor undici, also when they check options", () => {
  const limiter = loadedBy(
    "limiter",
    "new entry.RateLimiter({ hosts: { 'a.example': { metadata: { rates: '1/SECOND' } } } });",
  );
  assert.deepEqual(packagesIn(limiter), []);
  const breaker = loadedBy("breaker", "new entry.BreakerRegistry({ defaults: { fail_max: 3 } });");
  assert.deepEqual(packagesIn(breaker), []);
});

test("register loads neither zod nor yaml, nor telemetry, stores and commands that are not used", () => {
  const files = loadedBy("register");
  assert.deepEqual(packagesIn(files), ["structured-headers", "undici"]);
  const unneeded = files.filter(file =>
    /\/dist\/(?:telemetry|cli|harvest|ontology|testing)\/|\/dist\/.*(?:sqlite|redis-store)/.test(file),
  );
  assert.deepEqual(unneeded, []);
});

/** Which modules an entry of the package loads: each one costs every program time when it starts. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const root = resolve(import.meta.dirname, "..");

/** The URLs of the files that are loaded by importing an entry and then running some code. */
function loadedBy(entry: string, code = ""): readonly string[] {
  const hook = join(import.meta.dirname, "list-modules.ts");
  // Of the sources: in the built package one file has many modules.
  const url = pathToFileURL(join(root, "src", `${entry}.ts`));
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

test("every entry that loads undici checks the runtime before it imports anything else", () => {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const entries = Object.values<string | { readonly default: string }>(exports).flatMap(entry =>
    typeof entry === "string" ? [] : basename(entry.default, ".js"),
  );
  const withUndici = entries.filter(entry => packagesIn(loadedBy(entry)).includes("undici"));
  const firstImport = (entry: string) =>
    /^(?:import|export) .*$/m.exec(readFileSync(join(root, "src", `${entry}.ts`), "utf8"))?.[0];
  const check = 'import "./http/supported-runtime.ts";';
  assert.deepEqual(
    withUndici.map(entry => [entry, firstImport(entry)]),
    withUndici.map(entry => [entry, check]),
  );
  assert.deepEqual(withUndici, ["index", "harvest", "ontology", "register"]);
});

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
    /\/src\/(?:telemetry|cli|harvest|ontology|testing)\/|\/src\/.*(?:sqlite|redis-store)/.test(file),
  );
  assert.deepEqual(unneeded, []);
});

/** Runs code in a process that was started with the given arguments. */
function run(args: readonly string[]): { readonly stdout: string; readonly stderr: string } {
  const { stdout, stderr } = spawnSync(process.execPath, ["--disable-warning=ExperimentalWarning", ...args], {
    encoding: "utf8",
  });
  return { stdout, stderr };
}

const builtEntry = (name: string) => pathToFileURL(join(root, "dist", `${name}.js`)).href;

test("the built entries with a hub refuse an old Node before they load undici", () => {
  const old = `data:text/javascript,Object.defineProperty(process, "versions", { value: { node: "20.0.0" } });`;
  const hook = join(import.meta.dirname, "list-modules.ts");
  for (const entry of ["index", "harvest", "ontology", "register"]) {
    const { stdout, stderr } = run(["--import", hook, "--import", old, "--import", builtEntry(entry), "--eval", "0"]);
    assert.match(stderr, /docstokg needs Node 22\.19 or newer; this is Node 20\.0\.0/, entry);
    // The file of the package is read, but nothing that it requires.
    assert.ok(!stdout.includes("/undici/lib/"), entry);
  }
});

test("stacks of the built package name functions, and with source maps the lines of the sources", () => {
  const program = `const { RateLimiter } = await import(${JSON.stringify(builtEntry("limiter"))});
    try { new RateLimiter({ hosts: 5 }); } catch (error) { console.log(error.stack); }`;
  const code = ["--input-type=module", "--eval", program];
  assert.match(run(code).stdout, /at parseOptions \(.*\/dist\//);
  assert.match(
    run(["--enable-source-maps", ...code]).stdout,
    /at parseOptions \(.*\/src\/policy\/parse-options\.ts:\d+/,
  );
});

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join, resolve } from "node:path";
import { test } from "node:test";

const root = resolve(import.meta.dirname, "../..");

/** How many modules of `dist/` a command line loads in its own process. */
function modulesLoaded(program: string, ...argv: readonly string[]): number {
  const hook = join(import.meta.dirname, "count-modules.ts");
  const args = ["--disable-warning=ExperimentalWarning", "--import", hook, join(root, "bin", `${program}.cjs`)];
  const { status, stderr } = spawnSync(process.execPath, [...args, ...argv], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return Number(/^(\d+) modules$/m.exec(stderr)?.[1]);
}

test("--version and --help of both programs load fewer than 60 modules", () => {
  for (const program of ["docstokg", "ontofetch"]) {
    for (const flag of ["--version", "--help"]) {
      const count = modulesLoaded(program, flag);
      assert.ok(count > 0 && count < 60, `${program} ${flag}: ${count}`);
    }
  }
});

test("the help of the policy command loads fewer than 60 modules", () => {
  for (const argv of [
    ["policy", "--help"],
    ["help", "policy"],
    ["policy", "show", "--help"],
  ]) {
    const count = modulesLoaded("docstokg", ...argv);
    assert.ok(count > 0 && count < 60, `${argv.join(" ")}: ${count}`);
  }
});

test("a command does not load the modules of the other commands", () => {
  assert.ok(modulesLoaded("docstokg", "report", "--help") < modulesLoaded("docstokg", "run", "--help"));
});

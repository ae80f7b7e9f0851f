import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";

const root = resolve(import.meta.dirname, "..");

function bin(name: string, args: readonly string[], nodeOptions: readonly string[] = []) {
  const file = join(root, "bin", `${name}.cjs`);
  return spawnSync(process.execPath, [...nodeOptions, file, ...args], { encoding: "utf8" });
}

for (const name of ["docstokg", "ontofetch"]) {
  test(`${name} runs as a process: help on stdout, usage errors on stderr with exit code 2`, () => {
    const help = bin(name, ["--help"]);
    assert.equal(help.status, 0);
    assert.match(help.stdout, new RegExp(`^Usage: ${name}`));
    const nonsense = bin(name, ["nonsense"]);
    assert.equal(nonsense.status, 2);
    assert.equal(nonsense.stdout, "");
    assert.match(nonsense.stderr, new RegExp(`^${name}: unknown command 'nonsense'\n`));
  });

  test(`${name} on a Node version that is too old prints one line and exits with 2`, () => {
    const older = `data:text/javascript,Object.defineProperty(process, "versions", { value: { node: "22.18.9" } })`;
    const { status, stdout, stderr } = bin(name, ["--help"], ["--import", older]);
    assert.equal(stderr, `${name} needs Node 22.19 or newer; this is Node 22.18.9.\n`);
    assert.equal(stdout, "");
    assert.equal(status, 2);
  });

  test(`${name} starts on the oldest supported Node version`, () => {
    const oldest = `data:text/javascript,Object.defineProperty(process, "versions", { value: { node: "22.19.0" } })`;
    assert.equal(bin(name, ["--version"], ["--import", oldest]).status, 0);
  });

  test(`${name} in a clone that is not built prints the command to run`, t => {
    const clone = realpathSync(mkdtempSync(join(tmpdir(), "docstokg-clone-")));
    t.after(() => rmSync(clone, { recursive: true }));
    cpSync(join(root, "bin"), join(clone, "bin"), { recursive: true });
    const file = join(clone, "bin", `${name}.cjs`);
    const { status, stderr } = spawnSync(process.execPath, [file, "--help"], { encoding: "utf8" });
    assert.equal(stderr, `${name} is not built yet: run npm run build in ${clone}\n`);
    assert.equal(status, 2);
  });
}

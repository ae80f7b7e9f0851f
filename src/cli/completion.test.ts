import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { runCli, runIn } from "../../test/cli/kit.ts";
import { describeCommands } from "./command-descriptions.ts";
import { SHELLS } from "./completion-scripts.ts";
import { docstokg } from "./docstokg.ts";
import { ontofetch } from "./ontofetch.ts";

/** What bash would offer for the last of these words. */
async function offered(...words: readonly string[]): Promise<readonly string[]> {
  const { stdout: script } = await runCli(["completion", "bash"]);
  const line = `COMP_WORDS=(docstokg ${words.map(word => `'${word}'`).join(" ")}); COMP_CWORD=${words.length}; _docstokg`;
  const printed = execFileSync("bash", ["--norc", "-c", `${script}\n${line}; printf '%s\\n' "\${COMPREPLY[@]}"`]);
  return String(printed).split("\n").filter(Boolean);
}

test("bash completes commands, subcommands and flags", async () => {
  assert.deepEqual(await offered("pol"), ["policy"]);
  assert.deepEqual(await offered("breaker", ""), ["show", "open", "close", "half-open"]);
  assert.deepEqual(await offered("breaker", "open", "--fo"), ["--for"]);
  assert.deepEqual(await offered("--v"), ["--version"]);
});

test("bash finds the command behind arguments and flags, and leaves file names to the shell", async () => {
  assert.deepEqual(await offered("run", "--out", "papers", "--dry"), ["--dry-run"]);
  assert.deepEqual(await offered("run", "lis"), []);
});

test("the script of every shell has every command and flag", async () => {
  for (const program of [docstokg, ontofetch]) {
    for (const shell of SHELLS) {
      const { exitCode, stdout } = await runIn(program, ["completion", shell]);
      assert.equal(exitCode, 0);
      for (const { path, flags } of await describeCommands(program)) {
        assert.ok(stdout.includes(path.at(-1) ?? ""), `${shell}: ${path.join(" ")}`);
        for (const { long } of flags) assert.ok(stdout.includes(long.slice(2)), `${shell}: ${long}`);
      }
    }
  }
});

test("an unknown shell is an error that names the known ones", async () => {
  const { exitCode, stderr } = await runCli(["completion", "tcsh"]);
  assert.equal(exitCode, 2);
  assert.match(stderr, /"tcsh" is not one of bash, zsh, fish/);
});

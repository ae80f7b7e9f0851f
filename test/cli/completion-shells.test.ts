import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "../temporary-folder.ts";
import { FISH, GROFF, type Tool, whyMissing, ZSH } from "../tools.ts";
import { runCli } from "./kit.ts";

const root = resolve(import.meta.dirname, "../..");

/** The words that a shell offers for a line, sorted. */
type Complete = (folder: string, script: string, line: string) => readonly string[];

const linesOf = (text: string) => text.split(/\r?\n/).filter(Boolean);
const SHELLS: readonly (readonly [Tool, Complete])[] = [
  [
    FISH,
    (cwd, script, line) => {
      const command = `source ${script}; complete -C '${line}'`;
      const printed = execFileSync("fish", ["--no-config", "-c", command], { cwd, env: { ...process.env, HOME: cwd } });
      return linesOf(String(printed)).map(offered => offered.split("\t")[0] ?? "");
    },
  ],
  [
    ZSH,
    (cwd, script, line) => {
      const capture = join(import.meta.dirname, "capture-zsh.zsh");
      const env = { ...process.env, HOME: cwd, TERM: "dumb" };
      const printed = String(execFileSync("zsh", ["-f", capture, script, line], { cwd, env }));
      return Array.from(printed.matchAll(/<MATCH ([^>]*)>/g), ([, match = ""]) => match);
    },
  ],
];

for (const [shell, complete] of SHELLS) {
  describe(`${shell.name} completes`, { skip: whyMissing(shell) }, () => {
    const offeredIn = async () => {
      const folder = temporaryFolder("completion");
      const script = join(folder, "completion");
      writeFileSync(script, (await runCli(["completion", shell.name])).stdout);
      writeFileSync(join(folder, "works.txt"), "");
      return (line: string) => complete(folder, script, `docstokg ${line}`).toSorted();
    };

    test("commands, subcommands and flags", async () => {
      const offered = await offeredIn();
      assert.deepEqual(offered("pol"), ["policy"]);
      assert.deepEqual(offered("breaker "), ["close", "half-open", "open", "show"]);
      assert.deepEqual(offered("breaker open --fo"), ["--for"]);
      assert.deepEqual(offered("run --out papers --dry"), ["--dry-run"]);
      assert.deepEqual(offered("--v"), ["--version"]);
      assert.deepEqual(offered("help pol"), ["policy"]);
    });

    test("file names where a command takes arguments", async () => {
      assert.deepEqual((await offeredIn())("run wor"), ["works.txt"]);
    });
  });
}

describe("the man pages", { skip: whyMissing(GROFF) }, () => {
  for (const program of ["docstokg", "ontofetch"]) {
    test(`${program}(1) is rendered without a warning`, () => {
      const file = join(root, "man", `${program}.1`);
      const { status, stdout, stderr } = spawnSync("groff", ["-ww", "-man", "-Tutf8", file], { encoding: "utf8" });
      assert.equal(stderr, "");
      assert.equal(status, 0);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: bold text is written twice, with a backspace
      const text = stdout.replaceAll(/.\u0008/g, "");
      assert.match(text, /^NAME\n +(?:docstokg|ontofetch) +- /m);
      assert.match(text, /^EXIT STATUS$/m);
    });
  }
});

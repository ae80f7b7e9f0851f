import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { docstokg } from "../../src/cli/docstokg.ts";
import type { CliCommand } from "../../src/cli/program.ts";

const root = resolve(import.meta.dirname, "../..");

/** `policy show`, `why`: what can be typed. */
function paths({ name, commands = [], run }: CliCommand): readonly string[] {
  const below = commands.flatMap(paths).map(path => `${name} ${path}`);
  return run === undefined ? below : [name, ...below];
}

test("the reference of the command line has a row for every command", () => {
  const reference = readFileSync(join(root, "docs/reference/cli.md"), "utf8");
  const commands = docstokg.commands.flatMap(paths);
  assert.ok(commands.includes("breaker open"));
  for (const path of commands) assert.match(reference, new RegExp(`^\\| \`docstokg ${path}[ \`]`, "m"));
});

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { Command } from "commander";
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

test("the reference of the command line names every flag that there is", () => {
  const reference = readFileSync(join(root, "docs/reference/cli.md"), "utf8");
  const flags = docstokg.commands.flatMap(flagsOf);
  assert.ok(flags.includes("--metrics-port") && flags.includes("--no-telemetry"));
  for (const flag of new Set(flags)) assert.match(reference, new RegExp(`${flag}(?![a-z-])`), flag);
});

function flagsOf({ name, configure, commands = [] }: CliCommand): readonly string[] {
  const command = new Command(name);
  configure?.(command);
  return [...command.options.flatMap(({ long }) => long ?? []), ...commands.flatMap(flagsOf)];
}

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { Command } from "commander";
import { describeCommands } from "../../src/cli/command-descriptions.ts";
import { docstokg } from "../../src/cli/docstokg.ts";
import { ontofetch } from "../../src/cli/ontofetch.ts";
import { allCommands } from "./kit.ts";

const root = resolve(import.meta.dirname, "../..");
const reference = readFileSync(join(root, "docs/reference/commands.md"), "utf8");
const commandLine = readFileSync(join(root, "docs/reference/cli.md"), "utf8");

test("the CLI reference has a section for every command", async () => {
  const commands = (await allCommands(docstokg)).filter(({ module }) => module.run !== undefined);
  const paths = commands.map(({ path }) => path.join(" "));
  assert.ok(paths.includes("breaker open"));
  for (const path of paths) assert.match(reference, new RegExp(`^### docstokg ${path}$`, "m"));
});

test("the CLI reference names every flag", async () => {
  const flags = (await allCommands(docstokg)).flatMap(({ path, module }) => {
    const command = new Command(path.join(" "));
    module.configure?.(command);
    return command.options.flatMap(({ long }) => long ?? []);
  });
  assert.ok(flags.includes("--metrics-port") && flags.includes("--no-telemetry"));
  for (const flag of new Set(flags)) assert.match(reference, new RegExp(`${flag}(?![a-z-])`), flag);
});

test("the table of JSON output has a row for every command with --json", async () => {
  const commands = (await describeCommands(docstokg)).filter(({ flags }) =>
    flags.some(({ long }) => long === "--json"),
  );
  assert.ok(commands.length > 10);
  const [, section = ""] = /## JSON output\n([\s\S]*)/.exec(commandLine) ?? [];
  const rows = [...section.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell = ""]) => cell.split(", "));
  for (const { path } of commands) assert.ok(rows.includes(`\`${path.join(" ")}\``), path.join(" "));
});

test("every argument and every flag of both programs has a description", async () => {
  const commands = [...(await describeCommands(docstokg)), ...(await describeCommands(ontofetch))];
  const undescribed = commands.flatMap(({ path, arguments: args, flags }) =>
    [
      ...args.map(({ usage, description }) => [usage, description]),
      ...flags.map(flag => [flag.flags, flag.description]),
    ]
      .filter(([, description]) => description === "")
      .map(([usage]) => `${path.join(" ")} ${usage}`),
  );
  assert.deepEqual(undescribed, []);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "../errors.ts";
import { docstokg } from "./docstokg.ts";
import { ExitCode } from "./exit-code.ts";
import { ontofetch } from "./ontofetch.ts";
import { type CliCommand, type Program, runProgram } from "./program.ts";

async function run(program: Program, ...argv: readonly string[]) {
  let stdout = "";
  let stderr = "";
  const io = {
    argv,
    env: {},
    stdout: { write: (text: string) => (stdout += text) },
    stderr: { write: (text: string) => (stderr += text) },
  };
  const exitCode = await runProgram(program, io);
  return { exitCode, stdout, stderr };
}

const greet: CliCommand = {
  name: "greet",
  summary: "greet somebody",
  configure: command => command.argument("<name>").option("--loud", "shout"),
  run: async ([name], options, io) => {
    if (name === "nobody") throw new ConfigError([{ where: "--name", path: "", message: "nobody is not a name" }]);
    io.stdout.write(`hello ${options["loud"] ? name?.toUpperCase() : name}\n`);
    return name === "half" ? ExitCode.partial : ExitCode.ok;
  },
};
const example: Program = { name: "example", summary: "An example.", commands: [greet] };

for (const program of [docstokg, ontofetch]) {
  test(`${program.name} --help answers with usage, commands and exit codes`, async () => {
    const { exitCode, stdout, stderr } = await run(program, "--help");
    assert.equal(exitCode, 0);
    assert.equal(stderr, "");
    assert.match(stdout, new RegExp(`^Usage: ${program.name} `));
    assert.match(stdout, /help \[command\.\.\.\]/);
    for (const code of Object.values(ExitCode)) assert.match(stdout, new RegExp(`^ {2}${code} `, "m"));
  });

  test(`${program.name} --version prints the version of the package alone`, async () => {
    const { exitCode, stdout } = await run(program, "--version");
    assert.equal(exitCode, 0);
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  });

  test(`${program.name} answers an unknown command on stderr with exit code 2 and what to do`, async () => {
    const { exitCode, stdout, stderr } = await run(program, "nonsense");
    assert.equal(exitCode, 2);
    assert.equal(stdout, "");
    assert.equal(
      stderr,
      `${program.name}: unknown command 'nonsense'\nRun "${program.name} --help" to see what there is.\n`,
    );
  });
}

test("a command that was nearly hit is suggested", async () => {
  const { exitCode, stderr } = await run(example, "geret", "world");
  assert.equal(exitCode, 2);
  assert.match(stderr, /unknown command 'geret'\n\(Did you mean greet\?\)/);
});

test("no command at all prints the help and is a wrong use", async () => {
  const { exitCode, stderr } = await run(example);
  assert.equal(exitCode, 2);
  assert.match(stderr, /^Usage: example /);
});

test("a command gets its arguments and options, and its exit code is the program's", async () => {
  assert.deepEqual(await run(example, "greet", "world", "--loud"), {
    exitCode: 0,
    stdout: "hello WORLD\n",
    stderr: "",
  });
  assert.equal((await run(example, "greet", "half")).exitCode, 1);
});

test("a missing argument and an unknown option are wrong uses, the latter with a suggestion", async () => {
  assert.deepEqual((await run(example, "greet")).exitCode, 2);
  const { exitCode, stderr } = await run(example, "greet", "world", "--lod");
  assert.equal(exitCode, 2);
  assert.match(stderr, /unknown option '--lod'\n\(Did you mean --loud\?\)/);
});

test("help for one command describes that command", async () => {
  const { exitCode, stdout } = await run(example, "help", "greet");
  assert.equal(exitCode, 0);
  assert.match(stdout, /^Usage: example greet \[options\] <name>/);
  assert.match((await run(example, "help")).stdout, /^Usage: example \[options\]/);
});

test("help for a command that does not exist is a wrong use", async () => {
  const { exitCode, stderr } = await run(example, "help", "geret");
  assert.equal(exitCode, 2);
  assert.match(stderr, /there is no command 'geret'/);
});

test("a configuration error is a message and exit code 2, not a stack trace", async () => {
  const { exitCode, stderr } = await run(example, "greet", "nobody");
  assert.equal(exitCode, 2);
  assert.equal(stderr, "example: --name: nobody is not a name\n");
});

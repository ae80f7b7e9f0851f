import assert from "node:assert/strict";
import { test } from "node:test";
import { allCommands, runCli, runIn } from "../../test/cli/kit.ts";
import { docstokg } from "./docstokg.ts";
import { ExitCode } from "./exit-code.ts";
import { ontofetch } from "./ontofetch.ts";
import type { CommandModule, Program } from "./program.ts";
import { usageError } from "./usage-error.ts";

const greet: CommandModule = {
  configure: command => {
    command.argument("<name>").option("--loud", "print in capitals");
  },
  run: async ([name = ""], flags, io) => {
    if (name === "42") throw usageError("<name>", "42 is not a name");
    io.stdout.write(`hello ${flags["loud"] ? name.toUpperCase() : name}\n`);
    return name === "half" ? ExitCode.partial : ExitCode.ok;
  },
};

/** Counts how often each command is loaded. */
function exampleProgram() {
  const loads = { greet: 0, wave: 0 };
  const program: Program = {
    name: "example",
    summary: "An example.",
    commands: [
      {
        name: "greet",
        summary: "print a greeting",
        load: async () => {
          loads.greet += 1;
          return greet;
        },
      },
      {
        name: "wave",
        summary: "print a wave",
        load: async () => {
          loads.wave += 1;
          return { commands: [{ name: "back", summary: "print a wave back", run: async () => ExitCode.ok }] };
        },
      },
    ],
  };
  return { program, loads };
}
const { program: example } = exampleProgram();

for (const program of [docstokg, ontofetch]) {
  test(`${program.name} --help prints usage, commands and exit codes`, async () => {
    const { exitCode, stdout, stderr } = await runIn(program, ["--help"]);
    assert.equal(exitCode, 0);
    assert.equal(stderr, "");
    assert.match(stdout, new RegExp(`^Usage: ${program.name} `));
    assert.match(stdout, /help \[command\.\.\.\]/);
    for (const code of Object.values(ExitCode)) assert.match(stdout, new RegExp(`^ {2}${code} `, "m"));
  });

  test(`${program.name} --version prints only the version of the package`, async () => {
    const { exitCode, stdout } = await runIn(program, ["--version"]);
    assert.equal(exitCode, 0);
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  });

  test(`an unknown command of ${program.name} is an error on stderr, with exit code 2 and a hint`, async () => {
    const { exitCode, stdout, stderr } = await runIn(program, ["nonsense"]);
    assert.equal(exitCode, 2);
    assert.equal(stdout, "");
    assert.equal(stderr, `${program.name}: unknown command 'nonsense'\nRun "${program.name} --help" for usage.\n`);
  });
}

test("a mistyped command gets a suggestion", async () => {
  const { exitCode, stderr } = await runIn(example, ["geret", "world"]);
  assert.equal(exitCode, 2);
  assert.match(stderr, /unknown command 'geret'\n\(Did you mean greet\?\)/);
});

test("a program without a command prints its help and exits with 2", async () => {
  const { exitCode, stderr } = await runIn(example, []);
  assert.equal(exitCode, 2);
  assert.match(stderr, /^Usage: example /);
});

test("a command receives its arguments and flags, and its exit code is that of the program", async () => {
  assert.deepEqual(await runIn(example, ["greet", "world", "--loud"]), {
    exitCode: 0,
    stdout: "hello WORLD\n",
    stderr: "",
  });
  assert.equal((await runIn(example, ["greet", "half"])).exitCode, 1);
});

test("a missing argument and an unknown flag exit with 2, and the flag gets a suggestion", async () => {
  assert.deepEqual((await runIn(example, ["greet"])).exitCode, 2);
  const { exitCode, stderr } = await runIn(example, ["greet", "world", "--lod"]);
  assert.equal(exitCode, 2);
  assert.match(stderr, /unknown option '--lod'\n\(Did you mean --loud\?\)/);
});

test("the message about an unknown flag does not quote its secret value", async () => {
  const { stderr } = await runIn(example, ["greet", "world", "--api-key=hunter2"]);
  assert.match(stderr, /unknown option '--api-key=…/);
  assert.doesNotMatch(stderr, /hunter2/);
});

test("a flag that is given twice with different values exits with 2 and names the flag, unless it is repeatable", async () => {
  const runs: unknown[] = [];
  const list: CommandModule = {
    configure: command => {
      command
        .option("-i, --input <file>", "file", "none")
        .option("--rate <rate>", "repeatable", (value, rates: readonly string[] = []) => [...rates, value])
        .option("-q, --quiet", "print less");
    },
    run: async (_, flags) => {
      runs.push(flags);
      return ExitCode.ok;
    },
  };
  const program = { ...example, commands: [{ name: "list", summary: "list", load: async () => list }] };
  for (const flags of [
    ["-i", "a", "-i", "b"],
    ["--input=a", "-q", "-i", "b"],
  ])
    assert.deepEqual(await runIn(program, ["list", ...flags]), {
      exitCode: 2,
      stdout: "",
      stderr: "example: --input: given twice with different values; it takes one\n",
    });
  assert.equal((await runIn(program, ["list", ..."-i a -i a --rate 1 --rate 2 -q -q".split(" ")])).exitCode, 0);
  assert.deepEqual(runs, [{ input: "a", rate: ["1", "2"], quiet: true }]);
});

test("help with the name of a command prints the help of that command", async () => {
  const { exitCode, stdout } = await runIn(example, ["help", "greet"]);
  assert.equal(exitCode, 0);
  assert.match(stdout, /^Usage: example greet \[options\] <name>/);
  assert.match((await runIn(example, ["help"])).stdout, /^Usage: example \[options\]/);
});

test("help for an unknown command exits with 2", async () => {
  const { exitCode, stderr } = await runIn(example, ["help", "geret"]);
  assert.equal(exitCode, 2);
  assert.match(stderr, /unknown command 'geret'/);
});

test("a configuration error is a message and exit code 2, not a stack trace", async () => {
  const { exitCode, stderr } = await runIn(example, ["greet", "42"]);
  assert.equal(exitCode, 2);
  assert.equal(stderr, "example: <name>: 42 is not a name\n");
});

test("only the command that is called, or whose help is printed, is loaded", async () => {
  for (const [argv, expected] of [
    [["--version"], { greet: 0, wave: 0 }],
    [["--help"], { greet: 0, wave: 0 }],
    [["greet", "world"], { greet: 1, wave: 0 }],
    [["greet", "--help"], { greet: 1, wave: 0 }],
    [["help", "wave", "back"], { greet: 0, wave: 1 }],
    [["--", "wave", "back"], { greet: 0, wave: 1 }],
  ] as const) {
    const { program, loads } = exampleProgram();
    assert.equal((await runIn(program, argv)).exitCode, 0, argv.join(" "));
    assert.deepEqual(loads, expected, argv.join(" "));
  }
});

test("the help of every command fits 80 columns, and --help prints the same as the help command", async () => {
  for (const program of [docstokg, ontofetch]) {
    for (const { path } of await allCommands(program)) {
      const help = await runIn(program, [...path, "--help"]);
      assert.equal(help.exitCode, 0);
      for (const line of help.stdout.split("\n")) assert.ok(line.length <= 80, `${path.join(" ")}: ${line}`);
      assert.deepEqual(await runIn(program, ["help", ...path]), help);
    }
  }
});

test("the help of every command fits 40 columns, and a description below its flag is indented", async () => {
  for (const program of [docstokg, ontofetch]) {
    for (const { path } of [{ path: [] }, ...(await allCommands(program))]) {
      const { stdout } = await runIn(program, [...path, "--help"], { isTTY: true, columns: 40 });
      for (const line of stdout.split("\n")) assert.ok(line.length <= 40, `${path.join(" ")}: ${line}`);
    }
  }
  const { stdout } = await runCli(["breaker", "open", "--help"], { isTTY: true, columns: 40 });
  assert.match(stdout, /^Usage: docstokg breaker open \[options\]\n {7}<target>\n/);
  assert.match(
    stdout,
    /^ {2}--replace\n {4}also replace an order that lasts\n {4}longer; a Retry-After of the server\n/m,
  );
});

test("the default of a flag has no quotation marks", async () => {
  assert.match((await runCli(["demo", "--help"])).stdout, /\(default: 1\)$/m);
});

test("help for an unknown subcommand names the whole path", async () => {
  const { exitCode, stderr } = await runCli(["help", "policy", "shwo"]);
  assert.equal(exitCode, 2);
  assert.equal(stderr, "docstokg: unknown command 'policy shwo'\nRun \"docstokg policy --help\" for usage.\n");
});

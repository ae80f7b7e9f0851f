import assert from "node:assert/strict";
import { test } from "node:test";
import { describeCommands } from "./command-descriptions.ts";
import type { Program } from "./program.ts";

const program: Program = {
  name: "example",
  summary: "An example.",
  commands: [
    {
      name: "circuit",
      summary: "show and open circuits",
      load: async () => ({
        commands: [
          {
            name: "open",
            summary: "open a circuit",
            configure: command => {
              command
                .argument("<target>", "a host")
                .argument("[file...]")
                .option("-s, --seconds <number>", "how long", "60")
                .option("--out <folder>", 'output folder (default: "papers")')
                .option("--no-telemetry", "record nothing")
                .option("--json", "print JSON");
            },
            run: async () => 0,
          },
        ],
      }),
    },
  ],
};

test("a command is described with its arguments, flags and defaults", async () => {
  const [group, open] = await describeCommands(program);
  assert.equal(group?.runs, false);
  assert.deepEqual(open?.path, ["circuit", "open"]);
  assert.deepEqual(
    open?.arguments.map(({ usage }) => usage),
    ["<target>", "[file...]"],
  );
  assert.deepEqual(
    open?.flags.map(({ flags, long, takesValue, defaultText }) => [flags, long, takesValue, defaultText]),
    [
      ["-s, --seconds <number>", "--seconds", true, "60"],
      ["--out <folder>", "--out", true, "papers"],
      ["--no-telemetry", "--no-telemetry", false, undefined],
      ["--json", "--json", false, undefined],
    ],
  );
});

test("a default that a description names is not repeated in the description", async () => {
  const [, open] = await describeCommands(program);
  assert.equal(open?.flags[1]?.description, "output folder");
});

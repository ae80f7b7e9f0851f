import assert from "node:assert/strict";
import { test } from "node:test";
import { readYamlLayer } from "./yaml-layer.ts";

test("a few lines that expand to millions of values, and a huge file, are refused", () => {
  const bomb = [
    "a: &a { x: 1 }",
    ...Array.from({ length: 12 }, (_, i) => {
      const before = String.fromCharCode(97 + i);
      const name = String.fromCharCode(98 + i);
      return `${name}: &${name} { ${Array.from({ length: 9 }, (__, j) => `k${j}: *${before}`).join(", ")} }`;
    }),
  ].join("\n");
  const { problems } = readYamlLayer(bomb, "bomb.yaml");
  assert.equal(problems.length, 1);
  assert.match(problems[0]?.message ?? "", /^more than 250000 values|^nested more than 12 levels deep$/);
  const huge = readYamlLayer(`# ${"x".repeat(4_000_001)}\n`, "huge.yaml");
  assert.deepEqual(huge.problems, [
    { where: "huge.yaml", path: "", message: "the file has more than 4000000 characters" },
  ]);
});

test("a list that contains itself a thousand times has one problem", () => {
  const bomb = `a: &x [${Array(1000).fill("*x").join(", ")}]\n`;
  const { problems } = readYamlLayer(bomb, "bomb.yaml");
  assert.deepEqual(
    problems.map(({ message }) => message),
    ["nested more than 12 levels deep"],
  );
});

test("a file that is nested too deep has one problem", () => {
  const deep = (name: string) => `${name}: ${"{ a: ".repeat(14)}1${" }".repeat(14)}\n`;
  const { problems } = readYamlLayer(deep("x") + deep("y"), "deep.yaml");
  assert.equal(problems.filter(({ message }) => message.includes("nested more than 12 levels")).length, 1);
});

test("a file that is nested deeper than the parser's stack, or has two documents, has a problem in plain words", () => {
  const messagesOf = (text: string) => [
    ...new Set(readYamlLayer(text, "f.yaml").problems.map(({ message }) => message)),
  ];
  for (const [open, close] of [
    ["{ a: ", " }"],
    ["[", "]"],
  ] as const)
    assert.deepEqual(messagesOf(`hosts: ${open.repeat(5000)}${close.repeat(5000)}\n`), [
      "nested more than 12 levels deep",
    ]);
  assert.deepEqual(messagesOf("hosts: {}\n---\nhosts: {}\n"), [
    "a second document begins here; a policy file has one, so remove the line ---",
  ]);
});

test("the path of a problem is cut, so that a key of a megabyte is not printed", () => {
  const { problems } = readYamlLayer(`hosts:\n  ? ${"a".repeat(1_000_000)}\n  : { 1: {} }\n`, "long.yaml");
  assert.deepEqual(
    problems.map(({ path }) => path),
    [`hosts.${"a".repeat(394)}…`],
  );
});

test("an alias without an anchor, and a key that is not text, are problems with their line", () => {
  const { problems } = readYamlLayer("hosts:\n  a.example: *missing\n  1: {}\n", "odd.yaml");
  assert.deepEqual(
    problems.map(({ where, message }) => `${where} ${message}`),
    [
      'odd.yaml:2 unknown anchor "missing": define it above this line',
      "odd.yaml:3 invalid key 1: keys are text; put it in quotes",
    ],
  );
});

test("keys of a map in a list are checked like all others: names, kinds and repetitions", () => {
  const rules = ["header: a, header: b", "header: a, constructor: b", "header: a, 1: b"];
  const text = `defaults:\n  throttles:\n${rules.map(rule => `    - { ${rule} }\n`).join("")}`;
  assert.deepEqual(
    readYamlLayer(text, "f.yaml").problems.map(({ where, path, message }) => `${where} ${path}: ${message}`),
    [
      "f.yaml:3 defaults.throttles.header: duplicate entry header",
      'f.yaml:4 defaults.throttles: invalid key "constructor": this name is not allowed',
      "f.yaml:5 defaults.throttles: invalid key 1: keys are text; put it in quotes",
    ],
  );
});

test("the source of a number is the comment on its line or on the line of its entry, not a comment below it", () => {
  const text = [
    "hosts: # a remark about the section",
    "  a.example: # https://a.example/limits, 2026-10",
    "    metadata: { rates: 1/s }",
    "    artifact: { rates: 1/s } # its own",
    "    # a remark below the entry",
    "  b.example:",
    "    metadata: { rates: 1/s }",
    "    # 2019-01: an old remark",
  ].join("\n");
  const notes = readYamlLayer(text, "f.yaml")
    .assignments.filter(({ path }) => path.at(-1) === "rates")
    .map(({ path, note }) => [path.slice(1, 3).join(" "), note]);
  assert.deepEqual(notes, [
    ["a.example metadata", "https://a.example/limits, 2026-10"],
    ["a.example artifact", "its own"],
    ["b.example metadata", undefined],
  ]);
});

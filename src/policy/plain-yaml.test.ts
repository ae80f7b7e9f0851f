import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import fc from "fast-check";
import { readPlainYaml } from "./plain-yaml.ts";
import { readYamlLayer } from "./yaml-layer.ts";

const SHIPPED = ["ratelimits", "breakers"].map(name =>
  readFileSync(new URL(`../../configs/networking/${name}.yaml`, import.meta.url), "utf8"),
);

/** The complete parser is the oracle: the plain reader gives the same values, sources and comments, or gives up. */
function assertAgrees(text: string): boolean {
  const plain = readPlainYaml(text, "f.yaml");
  if (plain === undefined) return false;
  const { assignments, problems } = readYamlLayer(text, "f.yaml");
  assert.deepEqual(problems, [], text);
  assert.deepEqual(plain, assignments, text);
  return true;
}

describe("the plain reader", () => {
  test("reads the shipped limits like the complete parser, and agrees on the breakers", () => {
    assert.deepEqual(SHIPPED.map(assertAgrees), [true, false]);
  });

  const read: Readonly<Record<string, string>> = {
    "a file of comments": "# nothing\n\n  # here\n",
    "an empty file": "",
    "a file without a newline at its end": "version: 1",
    "maps and lists in one line":
      'hosts: { "a.org": { metadata: { rates: [1/s, "2/m"], max_delay_ms: 0.5 } } } # note\n',
    "quotes, ports and addresses":
      "hosts:\n  'a.org:8080': {}\n  b.org:80:\n    aimd: false\n  192.0.2.1: {}\n  '[::1]:8': {}\n",
    "a list below its key, in the same column":
      "services:\n  x:\n    members: # source\n    - a.org # first\n    - 'b.org/x'\n    total: { rates: 1/s }\n",
    "comments of entries and sections":
      "hosts: # section\n  a.org: # 2026-10\n    metadata:\n      rates: 1/s\n    # tail\n",
    "hosts in upper case": "groups: {}\nhosts:\n  A.ORG: {}\n",
  };
  for (const [what, text] of Object.entries(read))
    test(`reads ${what} like the complete parser`, () => assert.ok(assertAgrees(text)));

  const unread: Readonly<Record<string, string>> = {
    "an anchor": "a: &x 1\nb: *x\n",
    "a tag": "a: !replace [x]\n",
    "a document marker": "---\na: 1\n",
    "a text over two lines": "a: b\n  c\n",
    "a block of text": "a: |\n  b\n",
    "a tab": "a:\tb\n",
    "a key without a value": "a:\nb: 1\n",
    "a duplicate key": "hosts:\n  a.org: {}\n  A.org: {}\n",
    "a key that is a number": "1: a\n",
    "a number in another notation": "a: 0x10\n",
    "a word of YAML": "a: Null\n",
    "a list of maps": "a:\n  - b: 1\n",
    "a list of maps in one line": "a: [{ b: 1 }]\n",
    "a forbidden key": "__proto__: { a: 1 }\n",
    "a wrong indent": "a:\n    b: 1\n  c: 1\n",
    "a comment without a space": 'a: "b"#c\n',
    "deep nesting": `a: ${"{ a: ".repeat(14)}1${" }".repeat(14)}\n`,
    "an unclosed list": "a: [1, 2\n",
    "Windows line ends": "a: 1\r\nb: 2\r\n",
  };
  for (const [what, text] of Object.entries(unread))
    test(`leaves ${what} to the complete parser`, () => assert.equal(readPlainYaml(text, "f.yaml"), undefined));

  test("agrees with the complete parser on files that were changed at random, or gives up", () => {
    const lines = SHIPPED.join("").split("\n");
    const piece = fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(...lines.map(line => `${line}\n`)) },
      { weight: 4, arbitrary: fc.constantFrom(..."ab1 :,-#{}[]\"'/._~+;=()&*!|>?@%\\\n\té") },
      fc.constantFrom(
        "  ",
        "\n",
        ": ",
        " #",
        "- ",
        "a: ",
        "  b: ",
        "{ a: 1 }",
        "[1/s]",
        "null",
        "true",
        "1.50",
        "08",
        "12:30",
        "1_0",
      ),
    );
    let agreed = 0;
    const property = fc.property(fc.array(piece, { maxLength: 12 }), pieces => {
      if (assertAgrees(pieces.join(""))) agreed += 1;
    });
    fc.assert(property, { numRuns: 3000 });
    assert.ok(agreed > 100, `only ${agreed} texts were read by both`);
  });

  test("agrees with the complete parser on one small change of a valid file, or gives up", () => {
    const base =
      'version: 1\nhosts: # all\n  a.org: { metadata: { rates: ["1/s", 2/m] } } # x\n  "b.org":\n    artifact:\n      rates: 3/s # y\n      count_head: true\nservices:\n  s:\n    members:\n      - c.org/p # z\n      - d.org\n    total: { max_concurrent: 1 }\n';
    const change = fc.record({
      at: fc.nat(base.length),
      cut: fc.nat(4),
      put: fc.string({ unit: fc.constantFrom(..."ab1 :,-#{}[]\"'/.\n*&"), maxLength: 3 }),
    });
    let agreed = 0;
    const property = fc.property(fc.array(change, { minLength: 1, maxLength: 2 }), changes => {
      const text = changes.reduce((old, { at, cut, put }) => old.slice(0, at) + put + old.slice(at + cut), base);
      if (assertAgrees(text)) agreed += 1;
    });
    fc.assert(property, { numRuns: 3000 });
    assert.ok(agreed > 100, `only ${agreed} texts were read by both`);
  });
});

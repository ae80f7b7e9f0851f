import assert from "node:assert/strict";
import { test } from "node:test";
import { applied, mutantsOf, strippedOf } from "./mutants.ts";

const ADULT = "export const isAdult = (age: number): boolean => age >= 18;\n";
const COUNT =
  "export function countTo(end: number): number {\n  let n = 0;\n  while (n < end) n += 1;\n  return n;\n}\n";

function changes(source: string): readonly string[] {
  const code = strippedOf(source);
  return mutantsOf("toy.ts", source).map(mutant => applied(code, mutant).trim());
}

test("each kind of change is made, and only where it changes behaviour", () => {
  assert.deepEqual(changes("if (a && b) f();"), [
    "if (((a) || (b))) f();",
    "if (false) f();",
    "if (true) f();",
    "if (a && b) ;",
  ]);
  assert.deepEqual(changes("const x = Math.min(a, b) ?? true;"), [
    "const x = ((Math.min(a, b)) && (true));",
    "const x = Math.max(a, b) ?? true;",
    "const x = Math.min(a, b) ?? false;",
  ]);
  assert.deepEqual(changes("const x = a ? !b : c - 1;"), [
    "const x = false ? !b : c - 1;",
    "const x = true ? !b : c - 1;",
    "const x = a ? (b) : c - 1;",
    "const x = a ? !b : c + 1;",
    "const x = a ? !b : c - 2;",
  ]);
  assert.equal(
    changes(COUNT).some(text => text.includes("while (true)")),
    false,
  );
});

test("a mutant keeps its id when its line moves, and two equal lines have different ids", () => {
  const ids = (source: string) => mutantsOf("toy.ts", source).map(({ id }) => id);
  assert.deepEqual(ids(`// moved\n  ${ADULT}`), ids(ADULT));
  assert.equal(new Set(ids("f(1);\nf(1);\n")).size, 4);
});

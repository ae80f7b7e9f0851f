import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { JsonSplitter } from "./json-splitter.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

/** Puts the values back together. Lists and objects down to `depth` are split. */
function split(pieces: readonly string[], depth: number): unknown {
  const root: unknown[] = [];
  const splitter = new JsonSplitter({
    descends: (path, container) => {
      if (path.length >= depth) return false;
      put(path, container === "list" ? [] : {});
      return true;
    },
    value: put,
  });
  function put(path: readonly string[], value: unknown): void {
    let at: unknown = root;
    for (const key of ["*", ...path].slice(0, -1)) at = Array.isArray(at) ? at.at(-1) : Reflect.get(at as object, key);
    if (Array.isArray(at)) at.push(value);
    else Object.defineProperty(at, path.at(-1) ?? "", { value, enumerable: true, configurable: true, writable: true });
  }
  for (const piece of pieces) splitter.write(piece);
  splitter.end();
  return root[0];
}

test("the parts of any JSON text are those that JSON.parse gives, however it is divided", () => {
  fc.assert(
    fc.property(
      fc.json(),
      fc.array(fc.nat(200), { maxLength: 5 }),
      fc.nat(3),
      fc.nat(2),
      (text, cuts, depth, indent) => {
        const value: unknown = JSON.parse(text);
        const spaced = JSON.stringify(value, undefined, indent);
        const ends = [...cuts.map(cut => cut % (spaced.length + 1)), spaced.length].sort((a, b) => a - b);
        const pieces = ends.map((end, index) => spaced.slice(ends[index - 1] ?? 0, end));
        assert.deepEqual(split(pieces, depth), value);
      },
    ),
  );
});

test("a text that JSON.parse refuses is refused", () => {
  fc.assert(
    fc.property(
      fc.json(),
      fc.nat(),
      fc.constantFrom("", ",", "]", "}", '"', ":", "x", "1 2"),
      (text, position, damage) => {
        const at = position % (text.length + 1);
        const damaged = text.slice(0, at) + damage + text.slice(at + 1);
        let isValid = true;
        try {
          JSON.parse(damaged);
        } catch {
          isValid = false;
        }
        for (const depth of [0, 3]) {
          if (isValid) split([damaged], depth);
          else assert.throws(() => split([damaged], depth), SyntaxProblem, damaged);
        }
      },
    ),
    { numRuns: 300 },
  );
});

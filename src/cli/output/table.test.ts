import assert from "node:assert/strict";
import { test } from "node:test";
import { stripVTControlCharacters, styleText } from "node:util";
import fc from "fast-check";
import { formatTable } from "./table.ts";

test("columns line up, and no line ends in blanks", () => {
  assert.equal(
    formatTable(
      ["a", "b"],
      [
        ["long one", ""],
        ["x", "y"],
      ],
    ),
    "a         b\nlong one\nx         y\n",
  );
});

test("what is too wide for a terminal ends in an ellipsis, the widest column first", () => {
  const rows = [["api.example.org", "a".repeat(40), "x"]];
  const [header, line] = formatTable(["host", "why", ""], rows, { columns: 40 }).split("\n");
  assert.equal(header, "host             why");
  assert.equal(line, `api.example.org  ${"a".repeat(19)}…  x`);
});

test("a table is never wider than its terminal, unless every column is as narrow as can be", () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(fc.string({ maxLength: 60 }), { minLength: 3, maxLength: 3 })),
      fc.integer({ min: 28, max: 150 }),
      (rows, columns) => {
        const lines = formatTable(["a", "b", "c"], rows, { columns }).split("\n");
        for (const line of lines) assert.ok(line.length <= columns, line);
        assert.equal(lines.length, rows.length + 2);
      },
    ),
  );
});

test("colour takes no room", () => {
  const rows = [
    ["open", "x"],
    ["closed", "y"],
  ];
  const paint = (text: string, _: number, column: number) =>
    column === 0 ? styleText("red", text, { validateStream: false }) : text;
  const painted = formatTable(["state", ""], rows, { paint });
  assert.notEqual(painted, stripVTControlCharacters(painted));
  assert.equal(stripVTControlCharacters(painted), formatTable(["state", ""], rows));
});

test("a cell cannot command the terminal", () => {
  assert.equal(formatTable(["a"], [["\x1b[2Jgone\n"]]), "a\n\u{fffd}[2Jgone\u{fffd}\n");
});

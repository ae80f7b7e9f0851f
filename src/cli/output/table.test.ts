import assert from "node:assert/strict";
import { test } from "node:test";
import { stripVTControlCharacters, styleText } from "node:util";
import fc from "fast-check";
import { formatPairs, formatTable, terminalWidth } from "./table.ts";

const rows = [["api.example.org", "a long reason with several words", "x"]];

test("columns are aligned, and no line ends in spaces", () => {
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

test("a table that is too wide wraps its widest column at spaces", () => {
  assert.equal(
    formatTable(["host", "why", ""], rows, { columns: 40 }),
    "host             why\napi.example.org  a long reason with    x\n                 several words\n",
  );
});

test("if wrapping would break a word, each row becomes lines of heading and value", () => {
  assert.equal(
    formatTable(["host", "why", "n"], [...rows, ["b.example", "", "2"]], { columns: 22 }),
    "host: api.example.org\nwhy: a long reason\n  with several words\nn: x\n\nhost: b.example\nn: 2\n",
  );
});

test("a word that is longer than the terminal is broken behind a punctuation mark", () => {
  assert.equal(
    formatPairs([["url", "https://api.example.org/works/10.5555"]], { columns: 22 }),
    "url:\n  https://api.example.\n  org/works/10.5555\n",
  );
});

test("no line is wider than the terminal, and no text is lost", () => {
  const words = (text: string) => text.replace(/[\s:]/g, "").replace(/a|b|c/g, "");
  fc.assert(
    fc.property(
      fc.array(fc.array(fc.string({ unit: "grapheme-ascii", maxLength: 60 }), { minLength: 3, maxLength: 3 })),
      fc.integer({ min: 20, max: 150 }),
      (cells, columns) => {
        const text = formatTable(["a", "b", "c"], cells, { columns });
        for (const line of text.split("\n")) assert.ok(line.length <= columns, line);
        const sorted = (value: string) => [...words(value)].sort().join("");
        assert.equal(sorted(text), sorted(cells.flat().join("")));
      },
    ),
  );
});

test("a repeated first cell is left out of the table, and printed in the long form", () => {
  const repeated = [
    ["api.example.org", "1"],
    ["api.example.org", "2"],
  ];
  assert.equal(
    formatTable(["host", "n"], repeated, { hidesRepeats: true }),
    "host             n\napi.example.org  1\n                 2\n",
  );
  assert.equal(
    formatTable(["host", "processes"], repeated, { hidesRepeats: true, columns: 25 }),
    "host: api.example.org\nprocesses: 1\n\nhost: api.example.org\nprocesses: 2\n",
  );
});

test("colour does not change the width", () => {
  const states = [
    ["open", "api.example.org"],
    ["closed", "b.example"],
  ];
  const paint = (text: string, _: number, column: number) =>
    column === 0 ? styleText("red", text, { validateStream: false }) : text;
  for (const columns of [80, 20]) {
    const painted = formatTable(["state", ""], states, { paint, columns });
    assert.notEqual(painted, stripVTControlCharacters(painted));
    assert.equal(stripVTControlCharacters(painted), formatTable(["state", ""], states, { columns }));
  }
});

test("control characters of a cell do not reach the terminal", () => {
  assert.equal(formatTable(["a"], [["\x1b[2Jgone\n"]]), "a\n\u{fffd}[2Jgone\u{fffd}\n");
});

test("names and values are aligned without a heading, and become lines of name and value if that is too wide", () => {
  const pairs = [
    ["waits", "p50 250 ms, p95 400 ms, max 1 s"],
    ["time saved", "0 ms"],
  ] as const;
  assert.equal(formatPairs(pairs), "waits       p50 250 ms, p95 400 ms, max 1 s\ntime saved  0 ms\n");
  assert.equal(
    formatPairs(pairs, { columns: 40 }),
    "waits       p50 250 ms, p95 400 ms, max\n            1 s\ntime saved  0 ms\n",
  );
  assert.equal(formatPairs(pairs, { columns: 30 }), "waits: p50 250 ms, p95 400\n  ms, max 1 s\ntime saved: 0 ms\n");
});

test("the width is that of the terminal, at least 20, and unlimited in a pipe or if it is unknown", () => {
  assert.equal(terminalWidth({ isTTY: true, columns: 80 }), 80);
  assert.equal(terminalWidth({ isTTY: true, columns: 5 }), 20);
  assert.equal(terminalWidth({ isTTY: true, columns: 0 }), undefined);
  assert.equal(terminalWidth({ isTTY: false, columns: 80 }), undefined);
});

test("a table has any number of rows", () => {
  const many = Array.from({ length: 200_000 }, (_, row) => [`row ${row}`, "x"]);
  assert.equal(formatTable(["a", "b"], many).split("\n").length, 200_002);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { makePdf } from "./pdf.ts";

const text = { title: "A title (with brackets)", lines: ["10.5555/x"] };

test("a PDF has exactly the requested size", () => {
  fc.assert(
    fc.property(fc.integer({ min: 2000, max: 200_000 }), bytes => makePdf("a", text, bytes).length === bytes),
    { numRuns: 100 },
  );
});

test("the xref table has the offset of each object, and startxref the offset of the table", () => {
  const file = makePdf("a", text, 50_000).toString("latin1");
  assert.match(file, /^%PDF-1\.7\n/);
  const [, startsAt = ""] = /startxref\n(\d+)\n%%EOF\n$/.exec(file) ?? [];
  const table = file.slice(Number(startsAt));
  assert.match(table, /^xref\n/);
  const offsets = [...table.matchAll(/^(\d{10}) 00000 n $/gm)].map(([, offset]) => Number(offset));
  assert.equal(offsets.length, 7);
  for (const [index, offset] of offsets.entries()) assert.ok(file.startsWith(`${index + 1} 0 obj\n`, offset));
});

test("the same seed makes the same file, another seed another one", () => {
  assert.deepEqual(makePdf("a", text, 9000), makePdf("a", text, 9000));
  assert.notDeepEqual(makePdf("a", text, 9000), makePdf("b", text, 9000));
});

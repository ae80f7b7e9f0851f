import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";
import { ALL_LAWS } from "../sim/laws/all.ts";
import { occasionsTable, readTotals, totalsSentence } from "../sim/totals.ts";

const docs = resolve(import.meta.dirname, "../docs");
const text = readFileSync(resolve(docs, "guarantees.md"), "utf8");
const links = [...text.matchAll(/\[([^\]]+)\]\((\.\.\/[^)]+)\)/g)].map(([, title = "", target = ""]) => ({
  title,
  target,
}));
const sections = new Map(
  [...text.matchAll(/^### ([LBMS]\d+) .*\n([\s\S]*?)(?=^##|$(?![\s\S]))/gm)].map(([, law = "", body = ""]) => [
    law,
    body,
  ]),
);

const numbered = (letter: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${letter}${index + 1}`);

test("every law has a section with a linked proof, or says that it is not kept yet", () => {
  const laws = [...numbered("L", 14), ...numbered("B", 12), ...numbered("M", 3), ...numbered("S", 8)];
  assert.deepEqual([...sections.keys()], laws);
  for (const [law, body] of sections) assert.match(body, /\]\(\.\.\/|^Not kept yet: /m, law);
});

test("every linked test exists under its title", () => {
  assert.ok(links.length > 40);
  for (const { title, target } of links) {
    const file = resolve(docs, target);
    assert.ok(existsSync(file), target);
    if (/\/(?:sim|src|test)\/.*\.ts$/.test(target) && title !== "are caught")
      assert.ok(readFileSync(file, "utf8").includes(`"${title}"`), `${target} has no "${title}"`);
  }
});

test("every law of the simulator is cited", () => {
  const cited = new Set(links.map(({ title }) => title));
  assert.deepEqual(
    ALL_LAWS.map(({ title }) => title).filter(title => !cited.has(title)),
    [],
  );
});

test("the document quotes the recorded totals", () => {
  const quoted = /<!-- totals -->\n(.*)\n<!-- \/totals -->/.exec(text)?.[1];
  assert.equal(quoted, totalsSentence(readTotals()));
});

test("every law of the simulator applied at least 1,000 times in the recorded worlds, and the document says how often", () => {
  const totals = readTotals();
  const rare = ALL_LAWS.filter(({ title }) => (totals.occasions[title] ?? 0) < 1000);
  assert.deepEqual(
    rare.map(({ title }) => title),
    [],
  );
  const quoted = /<!-- occasions -->\n([\s\S]*?)\n<!-- \/occasions -->/.exec(text)?.[1];
  assert.equal(quoted, occasionsTable(totals));
});

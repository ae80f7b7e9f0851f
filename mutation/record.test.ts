import assert from "node:assert/strict";
import { test } from "node:test";
import { mutantsOf } from "./mutants.ts";
import { fileRecord, recordSentence, retried, untried } from "./record.ts";
import type { MutantResult } from "./try-mutants.ts";

const ADULT = "export const isAdult = (age: number): boolean => age >= 18;\n";
const mutants = mutantsOf("adult.ts", ADULT);
const results = mutants.map(
  (mutant, index): MutantResult => ({ mutant, outcome: index === 0 ? "survived" : "killed" }),
);
const record = { "adult.ts": fileRecord(ADULT, results) };

test("a record has the counts of a file and each survivor with its change", () => {
  const { tried, killed, timeOuts, survivors } = record["adult.ts"];
  assert.deepEqual([tried, killed, timeOuts], [2, 1, 0]);
  assert.deepEqual(survivors, { [mutants[0]?.id ?? ""]: "line 1: >= -> >" });
});

test("a file is tried again after a change of its code, but not of a comment", () => {
  const untriedWith = (text: string) => untried(record, [{ file: "adult.ts", text }]).length;
  assert.equal(untriedWith(ADULT), 0);
  assert.equal(untriedWith(`/** Of age. */\n// In years.\n${ADULT}`), 0);
  assert.equal(untriedWith(ADULT.replace("18", "21")), 1);
});

test("survivors that are tried again replace those of the record, and justified ones no longer count", () => {
  const [first] = mutants;
  assert.ok(first);
  const again = (...some: readonly MutantResult[]) => {
    const { tried, killed, survivors } = retried(record["adult.ts"], some);
    return [tried, killed, Object.keys(survivors).length];
  };
  assert.deepEqual(again({ mutant: first, outcome: "survived" }), [2, 1, 1]);
  assert.deepEqual(again({ mutant: first, outcome: "killed" }), [2, 2, 0]);
  assert.deepEqual(again(), [1, 1, 0]);
});

test("the sentence of the record sums its files", () => {
  assert.equal(recordSentence(record, 3), "2 mutants of 1 of 3 files tried; 1 killed (0 of them by a timeout), 50 %.");
});

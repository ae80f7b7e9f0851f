import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";
import { type Justified, problemsOf } from "./justified.ts";
import { mutantsOf } from "./mutants.ts";

const ADULT = "export const isAdult = (age: number): boolean => age >= 18;\n";

test("a justification without a mutant is an error, and so is one without a reason", () => {
  const [first] = mutantsOf("toy.ts", ADULT);
  const entry = { change: "toy.ts >= -> >", reason: "" };
  const justified = { [first?.id ?? ""]: entry, gone: { ...entry, reason: "equal" } };
  assert.deepEqual(
    new Set(problemsOf(justified, mutantsOf("toy.ts", ADULT))),
    new Set([`${first?.id} has no reason: toy.ts >= -> >`, "no mutant has the id gone: toy.ts >= -> >"]),
  );
});

test("every entry of justified.json is a mutant of the file that it names", () => {
  const justified: Justified = JSON.parse(readFileSync(resolve(import.meta.dirname, "justified.json"), "utf8"));
  const files = new Set(Object.values(justified).map(({ change }) => change.slice(0, change.indexOf(":"))));
  const mutants = [...files].flatMap(file =>
    mutantsOf(file, readFileSync(resolve(import.meta.dirname, "..", file), "utf8")),
  );
  assert.deepEqual(problemsOf(justified, mutants), []);
});

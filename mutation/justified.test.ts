import assert from "node:assert/strict";
import { test } from "node:test";
import { problemsOf } from "./justified.ts";
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

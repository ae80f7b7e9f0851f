import assert from "node:assert/strict";
import { test } from "node:test";
import { queryProblems } from "./query-problems.ts";

test("an invalid query is reported with its flags", () => {
  assert.deepEqual(queryProblems({ text: "sparse attention", fromYear: 2020, max: 50 }), []);
  assert.deepEqual(queryProblems({ text: " ", fromYear: 20, toYear: 2020.5, max: 0 }), [
    "--query is empty; expected search words",
    "--from-year: expected a year such as 2020, found 20",
    "--to-year: expected a year such as 2024, found 2020.5",
    "--max: expected a number above 0, found 0",
  ]);
  assert.deepEqual(queryProblems({ text: "x", fromYear: 2022, toYear: 2020 }), [
    "--from-year 2022 is after --to-year 2020",
  ]);
});

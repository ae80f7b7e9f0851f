import assert from "node:assert/strict";
import { test } from "node:test";
import type { OpenAlexQuery } from "../../harvest/inputs/openalex-query.ts";
import { queryProblems } from "./query-problems.ts";

const linesFor = (query: OpenAlexQuery) => queryProblems(query).map(({ where, message }) => `${where}: ${message}`);

test("an invalid query is reported with its flags", () => {
  assert.deepEqual(linesFor({ text: "sparse attention", fromYear: 2020, max: 50 }), []);
  assert.deepEqual(linesFor({ text: " ", fromYear: 20, toYear: 2020.5, max: 0 }), [
    "--query: the text is empty; expected search words",
    "--from-year: expected a year from 1000 to 2999, found 20",
    "--to-year: expected a year from 1000 to 2999, found 2020.5",
    "--max: expected a number above 0, found 0",
  ]);
  assert.deepEqual(linesFor({ text: "x".repeat(2001), fromYear: 2022, toYear: 2020 }), [
    "--query: the text has 2001 characters, limit is 2000",
    "--from-year: 2022 is after --to-year 2020",
  ]);
});

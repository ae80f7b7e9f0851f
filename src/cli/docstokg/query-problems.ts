import type { ConfigProblem } from "../../errors.ts";
import type { OpenAlexQuery } from "../../harvest/inputs/openalex-query.ts";

const QUERY_CHARS_MAX = 2000;

/** The problems of the flags of an OpenAlex search; empty for a valid query. */
export function queryProblems({ text: words, fromYear, toYear, max }: OpenAlexQuery): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const add = (where: string, message: string) => problems.push({ where, path: "", message });
  if (words.trim() === "") add("--query", "the text is empty; expected search words");
  if (words.length > QUERY_CHARS_MAX)
    add("--query", `the text has ${words.length} characters, limit is ${QUERY_CHARS_MAX}`);
  for (const [flag, year] of [
    ["--from-year", fromYear],
    ["--to-year", toYear],
  ] as const) {
    const problem = yearProblem(year);
    if (problem !== undefined) add(flag, problem);
  }
  if (fromYear !== undefined && toYear !== undefined && fromYear > toYear)
    add("--from-year", `${fromYear} is after --to-year ${toYear}`);
  if (max !== undefined && (!Number.isInteger(max) || max < 1)) add("--max", `expected a number above 0, found ${max}`);
  return problems;
}

/** Undefined for a year from 1000 to 2999, or without a year. */
export function yearProblem(year: number | undefined): string | undefined {
  if (year === undefined || (Number.isInteger(year) && year >= 1000 && year <= 2999)) return undefined;
  return `expected a year from 1000 to 2999, found ${year}`;
}

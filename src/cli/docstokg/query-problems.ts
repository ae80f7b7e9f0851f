import type { ConfigProblem } from "../../errors.ts";
import type { OpenAlexQuery } from "../../harvest/inputs/openalex-query.ts";

const QUERY_CHARS_MAX = 2000;

/** The problems of the flags of an OpenAlex search; empty for a valid query. */
export function queryProblems({ text: words, fromYear, toYear, max }: OpenAlexQuery): readonly ConfigProblem[] {
  const isYear = (year: number) => Number.isInteger(year) && year >= 1000 && year <= 2999;
  const problems: ConfigProblem[] = [];
  const add = (where: string, message: string) => problems.push({ where, path: "", message });
  if (words.trim() === "") add("--query", "the text is empty; expected search words");
  if (words.length > QUERY_CHARS_MAX)
    add("--query", `the text has ${words.length} characters, limit is ${QUERY_CHARS_MAX}`);
  if (fromYear !== undefined && !isYear(fromYear))
    add("--from-year", `expected a year such as 2020, found ${fromYear}`);
  if (toYear !== undefined && !isYear(toYear)) add("--to-year", `expected a year such as 2024, found ${toYear}`);
  if (fromYear !== undefined && toYear !== undefined && fromYear > toYear)
    add("--from-year", `${fromYear} is after --to-year ${toYear}`);
  if (max !== undefined && (!Number.isInteger(max) || max < 1)) add("--max", `expected a number above 0, found ${max}`);
  return problems;
}

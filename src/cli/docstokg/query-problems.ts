import type { OpenAlexQuery } from "../../harvest/inputs/openalex-query.ts";

const QUERY_CHARS_MAX = 2000;

/** Messages about invalid flags of an OpenAlex search; empty for a valid query. */
export function queryProblems({ text: words, fromYear, toYear, max }: OpenAlexQuery): readonly string[] {
  const isYear = (year: number) => Number.isInteger(year) && year >= 1000 && year <= 2999;
  const problems: string[] = [];
  if (words.trim() === "") problems.push("--query is empty; expected search words");
  if (words.length > QUERY_CHARS_MAX) problems.push(`--query has more than ${QUERY_CHARS_MAX} characters`);
  if (fromYear !== undefined && !isYear(fromYear))
    problems.push(`--from-year: expected a year such as 2020, found ${fromYear}`);
  if (toYear !== undefined && !isYear(toYear))
    problems.push(`--to-year: expected a year such as 2024, found ${toYear}`);
  if (fromYear !== undefined && toYear !== undefined && fromYear > toYear)
    problems.push(`--from-year ${fromYear} is after --to-year ${toYear}`);
  if (max !== undefined && (!Number.isInteger(max) || max < 1))
    problems.push(`--max: expected a number above 0, found ${max}`);
  return problems;
}

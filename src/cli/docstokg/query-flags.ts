import type { Command } from "commander";
import { ConfigError } from "../../errors.ts";
import { type OpenAlexQuery, QUERY_WORKS_DEFAULT } from "../../harvest/inputs/openalex-query.ts";
import type { WorkFilter } from "../../harvest/work-filter.ts";
import type { Flags } from "../program.ts";
import { usageError, wholeNumberFlag } from "../usage-error.ts";
import { queryProblems, yearProblem } from "./query-problems.ts";

/** The flags that only refine `--query`, by their names in `Flags`. */
export const QUERY_REFINEMENTS = { max: "--max" } as const;

const YEARS = { fromYear: "--from-year", toYear: "--to-year" } as const;
const LISTS = { licence: "--licence", type: "--type" } as const;

export function addQueryFlags(command: Command): void {
  command
    .option("--query <words>", "search OpenAlex for works")
    .option("--from-year <year>", "only works published in this year or later")
    .option("--to-year <year>", "only works published in this year or earlier")
    .option("--open-only", "only works that are open access")
    .option("--licence <list>", "only works with one of these licences, such as cc-by,cc0")
    .option("--type <list>", "only works of these types, such as article-journal,chapter")
    .option(
      "--max <count>",
      `with --query: maximum number of works; more than 10000 need OPENALEX_API_KEY (default: ${QUERY_WORKS_DEFAULT})`,
    );
}

/** Undefined without `--query`. Throws a ConfigError for an invalid search. */
export function queryOf(flags: Flags): OpenAlexQuery | undefined {
  const text = flags["query"];
  if (typeof text !== "string") return undefined;
  const { fromYear, toYear, openOnly } = filterOf(flags);
  const max = flags["max"] === undefined ? undefined : wholeNumberFlag(QUERY_REFINEMENTS.max, flags["max"], 0);
  const query = { text, fromYear, toYear, openOnly, max };
  const problems = queryProblems(query);
  if (problems.length > 0) throw new ConfigError(problems);
  return query;
}

/** The filter for the works of lists and searches. Throws a ConfigError for an invalid year or an empty list. */
export function filterOf(flags: Flags): WorkFilter {
  return {
    fromYear: yearOf(flags, "fromYear"),
    toYear: yearOf(flags, "toYear"),
    openOnly: flags["openOnly"] === true,
    licences: namesOf(flags, "licence"),
    types: namesOf(flags, "type"),
  };
}

function yearOf(flags: Flags, key: keyof typeof YEARS): number | undefined {
  if (flags[key] === undefined) return undefined;
  const year = wholeNumberFlag(YEARS[key], flags[key], 0);
  const problem = yearProblem(year);
  if (problem !== undefined) throw usageError(YEARS[key], problem);
  return year;
}

/** An empty list would leave out every work. */
function namesOf(flags: Flags, key: keyof typeof LISTS): readonly string[] | undefined {
  const value = flags[key];
  if (typeof value !== "string") return undefined;
  const names = value.split(",").flatMap(each => each.trim() || []);
  if (names.length === 0) throw usageError(LISTS[key], "the list is empty; expected names, separated by commas");
  return names;
}

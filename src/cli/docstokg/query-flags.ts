import type { Command } from "commander";
import { ConfigError } from "../../errors.ts";
import { type OpenAlexQuery, QUERY_WORKS_DEFAULT } from "../../harvest/inputs/openalex-query.ts";
import type { Flags } from "../program.ts";
import { wholeNumberFlag } from "../usage-error.ts";
import { queryProblems } from "./query-problems.ts";

/** The flags that only refine `--query`, by their names in `Flags`. */
export const QUERY_REFINEMENTS = {
  fromYear: "--from-year",
  toYear: "--to-year",
  openOnly: "--open-only",
  max: "--max",
} as const;

export function addQueryFlags(command: Command): void {
  command
    .option("--query <words>", "search OpenAlex for works")
    .option("--from-year <year>", "with --query: published in this year or later")
    .option("--to-year <year>", "with --query: published in this year or earlier")
    .option("--open-only", "with --query: only open-access works")
    .option(
      "--max <count>",
      `with --query: maximum number of works; more than 10000 need OPENALEX_API_KEY (default: "${QUERY_WORKS_DEFAULT}")`,
    );
}

/** Undefined without `--query`. Throws a ConfigError for an invalid search. */
export function queryOf(flags: Flags): OpenAlexQuery | undefined {
  const text = flags["query"];
  if (typeof text !== "string") return undefined;
  const number = (key: "fromYear" | "toYear" | "max") =>
    flags[key] === undefined ? undefined : wholeNumberFlag(QUERY_REFINEMENTS[key], flags[key], 0);
  const query = {
    text,
    fromYear: number("fromYear"),
    toYear: number("toYear"),
    isOpenOnly: flags["openOnly"] === true,
    max: number("max"),
  };
  const problems = queryProblems(query);
  if (problems.length > 0) throw new ConfigError(problems);
  return query;
}

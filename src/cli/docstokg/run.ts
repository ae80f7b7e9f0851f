import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { ConfigError, type ConfigProblem } from "../../errors.ts";
import {
  type Input,
  type InputProblem,
  inputsOfArguments,
  inputsOfFile,
  inputsOfStream,
} from "../../harvest/inputs/inputs.ts";
import { type OpenAlexQuery, QUERY_WORKS_DEFAULT, queryProblems } from "../../harvest/inputs/openalex-query.ts";
import { searchWorks } from "../../harvest/inputs/openalex-search.ts";
import type { Work } from "../../harvest/work.ts";
import { loadPolicy } from "../../policy/load.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Timer } from "../../time/time.ts";
import { terminalWidth } from "../output/table.ts";
import type { CliCommand, Io } from "../program.ts";
import { policySources } from "./policy-flags.ts";
import { compactPolicy } from "./policy-table.ts";
import { recordedCommand } from "./recorded-command.ts";
import { type Feed, runSession } from "./run-session.ts";
import { addRunFlags, inputFormatOf, makeFolders, runSettingsOf } from "./run-settings.ts";
import { exitCodeOf, summaryJson, summaryText } from "./run-summary.ts";

/** So many works are listed in one transaction. */
const LIST_BATCH = 200;
const LIST_FLUSH_MS = 50;

/** `docstokg run`: from names to files. */
export const run: CliCommand = {
  name: "run",
  summary: "get the files of works: from DOIs, arXiv ids, PMCIDs, URLs or a search to a folder and a manifest",
  configure: command => {
    command
      .argument("[work...]", "DOIs, arXiv ids, pmid:…, PMC…, OpenAlex ids, or http(s) addresses")
      .option("-i, --input <file>", "a list of works, - for stdin: one on each line, CSV or JSONL")
      .option("--input-format <format>", "lines, csv or jsonl; by the file's name unless given")
      .option("--column <name>", "the column or field that names the works")
      .option("--query <words>", "the works that a search on OpenAlex finds")
      .option("--from-year <year>", "of the search: published in this year or later")
      .option("--to-year <year>", "of the search: published in this year or before")
      .option("--open-only", "of the search: only works with an open copy")
      .option("--max <count>", `of the search: so many works (default: "${QUERY_WORKS_DEFAULT}")`)
      .option("--strict", "do nothing when a line of the list is wrong")
      .option("--refresh", "ask again for works that are there; what has not changed is not fetched");
    addRunFlags(command);
  },
  run: async (args, options, io) => {
    const settings = runSettingsOf(options);
    const list = inputsFrom(args, options, io);
    const query = queryFrom(options);
    if (list === undefined && query === undefined) {
      const message = "nothing to get; name works, or give --input or --query";
      throw new ConfigError([{ where: "run", path: "", message }]);
    }
    checkFlags(options);
    makeFolders(settings);
    if (!settings.isQuiet) {
      io.stderr.write(compactPolicy(await loadPolicy(policySources(options, io)), terminalWidth(io.stderr)));
    }
    const isStrict = options["strict"] === true;
    const again = options["refresh"] === true;
    const outcome = await runSession({
      settings,
      options,
      io,
      command: recordedCommand("run", options),
      isListedFirst: isStrict,
      feed: async feed => {
        const isValid = list === undefined || (await listAllInputs(list, feed, isStrict, again));
        if (isValid && query !== undefined) {
          for await (const works of searchWorks({ ...feed, time: systemTime }, query)) addWorks(feed, works, again);
        }
        return isValid;
      },
    });
    const { tally, report, wasInterrupted } = outcome;
    if (report.works.total + tally.problems === 0 && !wasInterrupted)
      io.stderr.write(query === undefined ? "The list names no works.\n" : "The search finds no works.\n");
    if (!outcome.wasRefused) {
      io.stdout.write(settings.isJson ? summaryJson(outcome, settings) : summaryText(outcome, settings));
    }
    return exitCodeOf(outcome);
  },
};

/** False when a line is wrong and that is not to be borne: then the manifest is as it was. */
async function listAllInputs(
  inputs: AsyncIterable<Input>,
  feed: Feed,
  isStrict: boolean,
  again: boolean,
): Promise<boolean> {
  const { manifest } = feed.run;
  if (isStrict) manifest.beginList();
  await listInputBatches(inputs, feed, again);
  if (!isStrict || feed.signal.aborted) return true;
  const isValid = feed.tally.problems === 0;
  if (isValid) manifest.commitList();
  else manifest.rollbackList();
  return isValid;
}

async function listInputBatches(inputs: AsyncIterable<Input>, feed: Feed, again: boolean): Promise<void> {
  let works: Work[] = [];
  let timer: Timer | undefined;
  const flushFailure = Promise.withResolvers<never>();
  const flush = () => {
    timer?.cancel();
    timer = undefined;
    // Who was interrupted may have closed the manifest by now.
    if (works.length > 0 && !feed.signal.aborted) addWorks(feed, works, again);
    works = [];
  };
  const flushLater = () => {
    try {
      flush();
    } catch (error) {
      flushFailure.reject(error);
    }
  };
  const read = async () => {
    for await (const input of inputs) {
      if (feed.signal.aborted) return;
      if ("problem" in input) {
        feed.tally.problems += 1;
        feed.log(problemText(input.problem));
      } else works.push(input.work);
      if (works.length >= LIST_BATCH) flush();
      // Whoever types a list, or makes it as he goes, sees its beginning done while the end is not written yet.
      else timer ??= systemTime.setTimer(LIST_FLUSH_MS, flushLater);
    }
    flush();
  };
  try {
    await Promise.race([read(), flushFailure.promise]);
  } finally {
    timer?.cancel();
  }
}

function addWorks({ run: open, tally }: Feed, works: readonly Work[], again: boolean): void {
  const { pending, present, failed } = open.addWorks(works, again);
  tally.wanted += pending;
  tally.present += present;
  tally.failedBefore += failed;
}

function problemText({ source, line, message }: InputProblem): string {
  return `${source}:${line}: ${message}`;
}

function inputsFrom(
  args: readonly string[],
  options: Readonly<Record<string, unknown>>,
  io: Io,
): AsyncIterable<Input> | undefined {
  const file = options["input"] as string | undefined;
  const format = inputFormatOf(options["inputFormat"] as string | undefined);
  const how = { format, column: options["column"] as string | undefined };
  if (file === undefined && args.length === 0) return undefined;
  return (async function* () {
    yield* inputsOfArguments(args);
    if (file === "-") yield* inputsOfStream(io.stdin ?? nothing(), "stdin", how);
    else if (file !== undefined) yield* inputsOfFile(file, how);
  })();
}

async function* nothing(): AsyncGenerator<string> {
  yield "";
}

/** A flag that would say nothing is a mistake: whoever gives it expects something of it. */
function checkFlags(options: Readonly<Record<string, unknown>>): void {
  const problems: ConfigProblem[] = [];
  const file = options["input"];
  const without = (needed: string, flags: Readonly<Record<string, string>>) => {
    for (const [key, flag] of Object.entries(flags))
      if (options[key] !== undefined)
        problems.push({ where: flag, path: "", message: `says nothing without ${needed}` });
  };
  if (file === undefined) without("--input", { inputFormat: "--input-format", column: "--column" });
  else if (file !== "-" && !existsSync(String(file)))
    problems.push({ where: "--input", path: "", message: `there is no file ${resolve(String(file))}` });
  if (options["query"] === undefined)
    without("--query", { fromYear: "--from-year", toYear: "--to-year", openOnly: "--open-only", max: "--max" });
  if (problems.length > 0) throw new ConfigError(problems);
}

function queryFrom(options: Readonly<Record<string, unknown>>): OpenAlexQuery | undefined {
  const text = options["query"];
  if (typeof text !== "string") return undefined;
  const number = (flag: string) => {
    const value = options[flag.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())];
    if (value === undefined || /^\d+$/.test(String(value))) return value === undefined ? undefined : Number(value);
    const message = `${JSON.stringify(value)} is no whole number`;
    throw new ConfigError([{ where: `--${flag}`, path: "", message }]);
  };
  const query = {
    text,
    fromYear: number("from-year"),
    toYear: number("to-year"),
    isOpenOnly: options["openOnly"] === true,
    max: number("max"),
  };
  const problems = queryProblems(query);
  if (problems.length > 0) {
    throw new ConfigError(problems.map(message => ({ where: "run", path: "", message })));
  }
  return query;
}

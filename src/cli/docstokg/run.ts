import { ConfigError, type ConfigProblem } from "../../errors.ts";
import { searchWorks } from "../../harvest/inputs/openalex-search.ts";
import { loadPolicy } from "../../policy/load.ts";
import { isPostgresUrl } from "../../stores/postgres/postgres-store-url.ts";
import { systemTime } from "../../time/system-time.ts";
import { formatCount } from "../output/format.ts";
import { terminalWidth } from "../output/table.ts";
import type { CommandModule, Flags } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { dryRun } from "./dry-run.ts";
import { addListFlags, checkHeader, inputFileProblems, listOf } from "./list-flags.ts";
import { addListedWorks, addWorks } from "./list-inputs.ts";
import { policySources } from "./policy-flags.ts";
import { compactPolicy, policyWarnings } from "./policy-table.ts";
import { addQueryFlags, filterOf, QUERY_REFINEMENTS, queryOf } from "./query-flags.ts";
import { recordedCommand } from "./recorded-command.ts";
import { runSession } from "./run-session.ts";
import { addRunFlags, makeFolders, runSettingsOf } from "./run-settings.ts";
import { enqueuedExitCode, exitCodeOf, printEnqueued, printSummary } from "./run-summary.ts";
import { joinableSettings } from "./shared-settings.ts";

/** `docstokg run`: downloads the files of works into a folder. */
export const run: CommandModule = {
  configure: command => {
    command.argument("[work...]", "DOIs, arXiv ids, pmid:…, PMC…, OpenAlex ids, or http(s) URLs");
    addListFlags(command);
    addQueryFlags(command);
    command.option("--dry-run", "print the calls to each service and how long they would take, and send nothing");
    command.option("--refresh", "revalidate works already downloaded; unchanged files are not fetched again");
    command.option("--enqueue-only", "add the works to a PostgreSQL manifest and leave them to docstokg worker");
    addRunFlags(command, { quiet: "do not print the policy and the progress", continues: false });
  },
  run: async (args, flags, io) => {
    const settings = runSettingsOf(flags, io);
    const list = listOf(args, flags, io);
    const query = queryOf(flags);
    const { fromYear, toYear } = filterOf(flags);
    if (fromYear !== undefined && toYear !== undefined && fromYear > toYear)
      throw usageError("--from-year", `${fromYear} is after --to-year ${toYear}`);
    if (list === undefined && query === undefined)
      throw usageError("run", "no works given: pass identifiers, --input or --query");
    checkFlags(flags, list !== undefined);
    await checkHeader(flags);
    if (flags["dryRun"] === true && list !== undefined) return dryRun(list, settings, flags, io);
    const isEnqueueOnly = flags["enqueueOnly"] === true;
    if (isEnqueueOnly && !isPostgresUrl(settings.manifest))
      throw usageError("--enqueue-only", "needs a PostgreSQL manifest: --manifest postgres://user@host/database");
    const policy = await loadPolicy(policySources(flags, io));
    makeFolders(settings);
    if (!settings.isQuiet) {
      io.stderr.write(compactPolicy(policy, terminalWidth(io.stderr)) + policyWarnings(policy));
    }
    const isStrict = flags["strict"] === true;
    const isRefresh = flags["refresh"] === true;
    const outcome = await runSession({
      settings,
      flags,
      io,
      command: recordedCommand("run", flags),
      isListedFirst: isStrict,
      isEnqueueOnly,
      sharedSettings: joinableSettings(settings, flags, policy, io),
      listWorks: async context => {
        const isValid = list === undefined || (await addListedWorks(list, context, { isStrict, isRefresh }));
        if (isValid && query !== undefined) {
          for await (const works of searchWorks({ ...context, time: systemTime }, query))
            await addWorks(context, works, isRefresh);
        }
        return isValid;
      },
    });
    const { counts, report, wasInterrupted } = outcome;
    if (report.works.total + counts.problems === 0 && !wasInterrupted)
      io.stderr.write(query === undefined ? "The list contains no works.\n" : "The search found no works.\n");
    if (outcome.wasRejected)
      io.stderr.write(
        `Nothing was downloaded: the list has ${formatCount(counts.problems, "invalid line")} (--strict).\n`,
      );
    else if (isEnqueueOnly) printEnqueued(outcome, settings, io);
    else printSummary(outcome, settings, io);
    return isEnqueueOnly ? enqueuedExitCode(outcome) : exitCodeOf(outcome);
  },
};

/** Throws a ConfigError that lists every flag without an effect. */
function checkFlags(flags: Flags, hasList: boolean): void {
  const problems: ConfigProblem[] = [];
  const add = (where: string, message: string) => problems.push({ where, path: "", message });
  const needs = (needed: string, names: Readonly<Record<string, string>>) => {
    for (const [key, flag] of Object.entries(names))
      if (flags[key] !== undefined) add(flag, `has no effect without ${needed}`);
  };
  if (flags["input"] === undefined) needs("--input", { inputFormat: "--input-format", column: "--column" });
  if (flags["dryRun"] === true && flags["query"] !== undefined)
    add("--dry-run", "cannot estimate a search: --query sends requests to find the works");
  if (flags["dryRun"] === true)
    for (const [key, flag] of Object.entries({ refresh: "--refresh", enqueueOnly: "--enqueue-only" }))
      if (flags[key] !== undefined) add(flag, "has no effect with --dry-run");
  if (flags["query"] === undefined) needs("--query", QUERY_REFINEMENTS);
  if (!hasList) needs("a list: identifiers or --input", { strict: "--strict" });
  for (const [flag, message] of inputFileProblems(flags)) add(flag, message);
  if (problems.length > 0) throw new ConfigError(problems);
}

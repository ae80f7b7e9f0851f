import { ConfigError, type ConfigProblem } from "../../errors.ts";
import { checkFiles } from "../../policy/check-file.ts";
import type { PolicyFinding } from "../../policy/finding.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import { checkPolicyStores } from "../../stores/open-store.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { formatCount } from "../output/format.ts";
import { printJson } from "../output/json.ts";
import type { RunCommand } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { policySources } from "./policy-flags.ts";
import { withStdin } from "./policy-stdin.ts";

/** `docstokg policy check`. */
export const checkPolicies: RunCommand = async (given, options, io) => {
  const sources = policySources(options, io);
  const { env, time = systemTime } = io;
  const checkStores = (policy: LoadedPolicy) => checkPolicyStores({ policy, env, time, random: Math.random });
  if (given.indexOf("-") !== given.lastIndexOf("-"))
    throw usageError("-", "stdin is given twice, and can be checked only once");
  const check = (stdin: string) =>
    checkFiles(
      given.map(file => (file === "-" ? stdin : file)),
      sources,
      { nowMs: time.wallMs(), checkStores },
    );
  const { files, problems, findings } = await (given.includes("-") ? withStdin(io, check) : check(""));
  const lines = files.map(({ file, kind }) => {
    const own = countOf(problems.filter(({ where }) => where === file || where.startsWith(`${file}:`)));
    return `${file}: ${kind}, ${own === 0 ? "ok" : formatCount(own, "problem")}`;
  });
  const warnings = findings.filter(({ severity }) => severity === "warning");
  const notices = findings.filter(({ severity }) => severity === "notice");
  if (options["json"]) {
    printJson(io, { files, problems, warnings, notices });
  } else {
    if (problems.length > 0) io.stderr.write(`${new ConfigError(problems).message}\n`);
    for (const line of findingLines(warnings)) io.stderr.write(`${line}\n`);
    lines.push(...findingLines(notices));
    const counts = [
      formatCount(countOf(problems), "problem"),
      formatCount(warnings.length, "warning"),
      formatCount(notices.length, "notice"),
    ];
    lines.push(counts.join(", "));
    io.stdout.write(lines.map(line => `${line}\n`).join(""));
  }
  const isFailed = problems.length > 0 || (options["strict"] === true && warnings.length > 0);
  return isFailed ? ExitCode.usage : ExitCode.ok;
};

function countOf(problems: readonly ConfigProblem[]): number {
  return problems.reduce((sum, { count = 1 }) => sum + count, 0);
}

/** Thousands of findings of one rule usually have one cause. Findings after the first 20 are only counted. */
const SHOWN_PER_RULE_MAX = 20;

function findingLines(findings: readonly PolicyFinding[]): readonly string[] {
  const byRule = Map.groupBy(findings, ({ rule }) => rule);
  return [...byRule].flatMap(([rule, ofRule]) => {
    const more = ofRule.length - SHOWN_PER_RULE_MAX;
    const shown = ofRule.slice(0, SHOWN_PER_RULE_MAX);
    const texts = [...shown.map(({ message }) => message), ...(more > 0 ? [`and ${more} more; --json lists all`] : [])];
    return texts.map(text => `${ofRule[0]?.severity}: ${text} [${rule}]`);
  });
}

import { ConfigError, type ConfigProblem } from "../../errors.ts";
import { checkFile, checkPolicy, type PolicyCheck } from "../../policy/check-file.ts";
import type { PolicyFinding } from "../../policy/finding.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { formatCount } from "../output/format.ts";
import { printJson } from "../output/json.ts";
import type { RunCommand } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { policySources } from "./policy-flags.ts";
import { checkStdin } from "./policy-stdin.ts";

/** `docstokg policy check`. */
export const checkPolicies: RunCommand = async (files, options, io) => {
  const sources = policySources(options, io);
  const nowMs = (io.time ?? systemTime).wallMs();
  const problems = new Map<string, ConfigProblem>();
  const findings = new Map<string, PolicyFinding>();
  const lines: string[] = [];
  const add = (found: PolicyCheck) => {
    for (const problem of found.problems) problems.set(JSON.stringify(problem), problem);
    for (const finding of found.findings) findings.set(finding.message, finding);
  };
  if (files.length === 0) add(await checkPolicy(sources, nowMs));
  if (files.indexOf("-") !== files.lastIndexOf("-"))
    throw usageError("-", "stdin is given twice, and can be checked only once");
  for (const given of files) {
    const isStdin = given === "-";
    const file = isStdin ? "stdin" : given;
    const found = await (isStdin ? checkStdin(io, sources, nowMs) : checkFile(file, sources, nowMs));
    const own = found.problems.filter(({ where }) => where === file || where.startsWith(`${file}:`));
    lines.push(`${file}: ${found.kind}, ${own.length === 0 ? "ok" : formatCount(own.length, "problem")}`);
    add(found);
  }
  const all = [...problems.values()];
  const warnings = [...findings.values()].filter(({ severity }) => severity === "warning");
  const notices = [...findings.values()].filter(({ severity }) => severity === "notice");
  if (options["json"]) {
    printJson(io, { problems: all, warnings, notices });
  } else {
    if (all.length > 0) io.stderr.write(`${new ConfigError(all).message}\n`);
    for (const line of findingLines(warnings)) io.stderr.write(`${line}\n`);
    lines.push(...findingLines(notices));
    const counts = [
      formatCount(all.length, "problem"),
      formatCount(warnings.length, "warning"),
      formatCount(notices.length, "notice"),
    ];
    lines.push(counts.join(", "));
    io.stdout.write(lines.map(line => `${line}\n`).join(""));
  }
  const isFailed = all.length > 0 || (options["strict"] === true && warnings.length > 0);
  return isFailed ? ExitCode.usage : ExitCode.ok;
};

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

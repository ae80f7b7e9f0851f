import { ConfigError, type ConfigProblem } from "../../errors.ts";
import type { PolicyCheck } from "../../policy/check-file.ts";
import {
  type ExplainedValue,
  explainCircuit,
  explainLimits,
  explainPolicy,
  explainResolver,
  explainSettings,
} from "../../policy/explanation.ts";
import type { PolicyFinding } from "../../policy/finding.ts";
import { canonicalHostIfValid } from "../../policy/layer.ts";
import { type LoadedPolicy, loadPolicy } from "../../policy/load.ts";
import { memberList } from "../../policy/member.ts";
import { unknownServiceMessage } from "../../policy/overrides.ts";
import { breakerRows, hostBreakerRows, hostPolicyRows, policyRows, serviceRows } from "../../policy/policy-row.ts";
import { isRole, ROLES, type Role, unknownRoleMessage } from "../../policy/roles.ts";
import { type PolicyTarget, policyTarget } from "../../policy/target.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { formatCount } from "../output/format.ts";
import { printJson } from "../output/json.ts";
import { terminalWidth } from "../output/table.ts";
import type { CommandModule, Subcommand } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { addPolicyFlags, policySources } from "./policy-flags.ts";
import {
  breakersTable,
  limitsTable,
  notesText,
  policySettings,
  servicesTable,
  settingsText,
  sourcesTable,
  textLines,
} from "./policy-text.ts";

const RESOLVER_PREFIX = "resolver:";
const SERVICE_PREFIX = "service:";

const show: Subcommand = {
  name: "show",
  summary: "print the effective rate limits and breaker settings",
  configure: command => {
    command.option("--host <host>", "only this host or URL, all its roles").option("--json", "print JSON");
    addPolicyFlags(command);
  },
  run: async (_, options, io) => {
    const loaded = await loadPolicy(policySources(options, io));
    const target = typeof options["host"] === "string" ? targetOf(loaded, options["host"]) : undefined;
    const settings = policySettings(loaded);
    const rows = target === undefined ? policyRows(loaded) : hostPolicyRows(loaded, target);
    const breakers = target === undefined ? breakerRows(loaded) : hostBreakerRows(loaded, target);
    const services = target === undefined ? serviceRows(loaded) : [];
    if (options["json"]) {
      printJson(io, { settings, rows, breakers, services });
      return ExitCode.ok;
    }
    const columns = terminalWidth(io.stdout);
    const parts = [settingsText(settings, columns), limitsTable(rows, columns), breakersTable(breakers, columns)];
    if (services.length > 0) parts.push(servicesTable(services, columns));
    io.stdout.write(parts.join("\n"));
    return ExitCode.ok;
  },
};

const explain: Subcommand = {
  name: "explain",
  summary: "print where each value for a host comes from",
  configure: command => {
    command
      .argument("<target>", "a host, a URL, service:<name>, defaults, or resolver:<name>")
      .argument("[role]", `one of ${ROLES.join(", ")} (default: metadata)`)
      .option("--json", "print JSON");
    addPolicyFlags(command);
  },
  run: async ([target = "", givenRole], options, io) => {
    const role = givenRole ?? "metadata";
    if (!isRole(role)) throw usageError("[role]", unknownRoleMessage(role));
    if (givenRole !== undefined && target.startsWith(RESOLVER_PREFIX))
      throw usageError("[role]", "has no effect with resolver:<name>: a resolver has one circuit for all roles");
    const loaded = await loadPolicy(policySources(options, io));
    const { names, listing, values } = explanationOf(loaded, target, role);
    const settings = explainSettings(loaded);
    if (options["json"]) {
      printJson(io, { ...names, values, settings });
      return ExitCode.ok;
    }
    const columns = terminalWidth(io.stdout);
    io.stdout.write(`${textLines(listing, columns).join("\n")}\n\n${sourcesTable(values, columns)}`);
    io.stdout.write(notesText(values, columns));
    io.stdout.write(`\nfor all hosts\n\n${sourcesTable(settings, columns)}`);
    return ExitCode.ok;
  },
};

const check: Subcommand = {
  name: "check",
  summary: "validate the effective policy, or the policy with these files in it, and point out doubtful settings",
  configure: command => {
    command
      .argument("[file...]")
      .option("--strict", "fail on warnings too (exit code 2)")
      .option("--json", "print JSON");
    addPolicyFlags(command);
  },
  run: async (files, options, io) => {
    // The rules of the check are many modules, which the other subcommands and --help do not need.
    const { checkFile, checkPolicy } = await import("../../policy/check-file.ts");
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
    for (const file of files) {
      const found = await checkFile(file, sources, nowMs);
      const own = found.problems.filter(({ where }) => where === file || where.startsWith(`${file}:`));
      lines.push(`${file}: ${found.key}, ${own.length === 0 ? "ok" : formatCount(own.length, "problem")}`);
      add(found);
    }
    const all = [...problems.values()];
    const warnings = [...findings.values()].filter(({ severity }) => severity === "warning");
    const notices = [...findings.values()].filter(({ severity }) => severity === "notice");
    if (options["json"]) {
      printJson(io, { problems: all, warnings, notices });
    } else {
      if (all.length > 0) io.stderr.write(`${new ConfigError(all).message}\n`);
      for (const { message, rule } of warnings) io.stderr.write(`warning: ${message} [${rule}]\n`);
      for (const { message, rule } of notices) lines.push(`notice: ${message} [${rule}]`);
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
  },
};

/** `docstokg policy`: which limits and breaker settings are effective, where they come from, and what is wrong with them. */
export const policy: CommandModule = { commands: [show, explain, check] };

interface PolicyExplanation {
  /** The names of the explained target and role, for JSON. */
  readonly names: Readonly<Record<string, string>>;
  /** One line of text: what is explained, and where the policy lists it. */
  readonly listing: string;
  readonly values: readonly ExplainedValue[];
}

/** The target is read as `--rate` reads it: a listed host, then a service, then a host that is not listed. */
function explanationOf(loaded: LoadedPolicy, target: string, role: Role): PolicyExplanation {
  const { options } = loaded.ratelimits;
  if (target.startsWith(RESOLVER_PREFIX)) {
    const resolver = target.slice(RESOLVER_PREFIX.length);
    const isListed = Object.hasOwn(loaded.breakers.options.resolvers ?? {}, resolver);
    const listing = `resolver ${resolver}, ${listedText(isListed)}`;
    return { names: { resolver }, listing, values: explainResolver(loaded, resolver) };
  }
  if (target.toLowerCase() === "defaults") {
    const values = [...explainLimits(loaded, {}, role), ...explainCircuit(loaded, {}, role)];
    return {
      names: { target: "defaults", role },
      listing: `defaults (${role}), for hosts that are not listed`,
      values,
    };
  }
  const service = serviceIn(loaded, target);
  if (service !== undefined) {
    const { members } = options.services?.[service] ?? {};
    const listing = `service ${service} (${role}): ${memberList(members).join(", ") || "each host separately"}`;
    const values = [...explainLimits(loaded, { service }, role), ...explainCircuit(loaded, { service }, role)];
    return { names: { service, role }, listing, values };
  }
  const { host, path } = targetOf(loaded, target);
  return explanationOfHost(loaded, host, path, role);
}

function explanationOfHost(
  loaded: LoadedPolicy,
  host: string,
  path: string | undefined,
  role: Role,
): PolicyExplanation {
  const { service, listed = [], tiers = [] } = loaded.ratelimits.resolved.scopeOf(host, path);
  const { name } = loaded.ratelimits.resolved.route(host, role, path);
  const { circuit, cooldown } = loaded.breakers.resolved.route(host, path);
  const place = service === undefined ? listedText(listed.length > 0) : `member of service ${service}`;
  const listing = `${host} (${role}), ${place}${tiers.length === 0 ? "" : `, with ${tiers.join(" and ")}`}`;
  const names = { host, role, ...(service === undefined ? {} : { service }), key: name, circuit, cooldown };
  return { names, listing, values: explainPolicy(loaded, host, role, path) };
}

/** The service that a target names: `service:<name>`, or the name alone when no host of that name is listed. */
function serviceIn({ ratelimits: { options } }: LoadedPolicy, target: string): string | undefined {
  const services = Object.keys(options.services ?? {});
  const isPrefixed = target.startsWith(SERVICE_PREFIX);
  const name = isPrefixed ? target.slice(SERVICE_PREFIX.length) : target;
  const found = services.find(service => service.toLowerCase() === name.toLowerCase());
  if (isPrefixed && found === undefined) throw usageError("<target>", unknownServiceMessage(name, services));
  return isPrefixed || !Object.hasOwn(options.hosts ?? {}, canonicalHostIfValid(target)) ? found : undefined;
}

function listedText(isListed: boolean): string {
  return isListed ? "listed in the policy" : "not listed: the defaults apply";
}

function targetOf(policy: LoadedPolicy, text: string): PolicyTarget {
  try {
    return policyTarget(policy, text);
  } catch (error) {
    if (error instanceof RangeError) throw usageError("<target>", error.message);
    throw error;
  }
}

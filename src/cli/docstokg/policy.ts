import { urlHost } from "../../core/text/host.ts";
import { quote } from "../../core/text/quote.ts";
import { ConfigError, type ConfigProblem } from "../../errors.ts";
import { checkFile, checkPolicy } from "../../policy/check-file.ts";
import {
  type ExplainedValue,
  explainCircuit,
  explainLimits,
  explainPolicy,
  explainResolver,
  explainSettings,
} from "../../policy/explanation.ts";
import { canonicalHostIfValid } from "../../policy/layer.ts";
import { type LoadedPolicy, loadPolicy } from "../../policy/load.ts";
import { breakerRows, groupRows, hostBreakerRows, hostPolicyRows, policyRows } from "../../policy/policy-row.ts";
import { isRole, ROLES, type Role, unknownRoleMessage } from "../../policy/roles.ts";
import { ExitCode } from "../exit-code.ts";
import { formatCount } from "../output/format.ts";
import { printJson } from "../output/json.ts";
import { terminalWidth } from "../output/table.ts";
import type { CommandModule, Subcommand } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { addPolicyFlags, policySources } from "./policy-flags.ts";
import {
  breakersTable,
  groupsTable,
  limitsTable,
  policySettings,
  settingsText,
  sourcesTable,
  textLines,
} from "./policy-text.ts";

const RESOLVER_PREFIX = "resolver:";

const show: Subcommand = {
  name: "show",
  summary: "print the effective rate limits and breaker settings",
  configure: command => {
    command.option("--host <host>", "only this host, all its roles").option("--json", "print JSON");
    addPolicyFlags(command);
  },
  run: async (_, options, io) => {
    const loaded = await loadPolicy(policySources(options, io));
    const target = typeof options["host"] === "string" ? listedTarget(loaded, options["host"]) : undefined;
    const settings = policySettings(loaded);
    const rows = target === undefined ? policyRows(loaded) : hostPolicyRows(loaded, target);
    const breakers = target === undefined ? breakerRows(loaded) : hostBreakerRows(loaded, target.host);
    const groups = target === undefined ? groupRows(loaded) : [];
    if (options["json"]) {
      printJson(io, { settings, rows, breakers, groups });
      return ExitCode.ok;
    }
    const columns = terminalWidth(io.stdout);
    const parts = [settingsText(settings, columns), limitsTable(rows, columns), breakersTable(breakers, columns)];
    if (groups.length > 0) parts.push(groupsTable(groups, columns));
    io.stdout.write(parts.join("\n"));
    return ExitCode.ok;
  },
};

const explain: Subcommand = {
  name: "explain",
  summary: "print where each value for a host comes from",
  configure: command => {
    command
      .argument("<target>", "a host, a URL, a group, defaults, or resolver:<name>")
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
    io.stdout.write(`\nfor all hosts\n\n${sourcesTable(settings, columns)}`);
    return ExitCode.ok;
  },
};

const check: Subcommand = {
  name: "check",
  summary: "validate the effective policy, or the policy with these files in it",
  configure: command => {
    command.argument("[file...]").option("--json", "print JSON");
    addPolicyFlags(command);
  },
  run: async (files, options, io) => {
    const sources = policySources(options, io);
    const problems = new Map<string, ConfigProblem>();
    const warnings = new Set<string>();
    const lines: string[] = [];
    const add = (found: Awaited<ReturnType<typeof checkPolicy>>) => {
      for (const problem of found.problems) problems.set(JSON.stringify(problem), problem);
      for (const warning of found.warnings) warnings.add(warning);
    };
    if (files.length === 0) add(await checkPolicy(sources));
    for (const file of files) {
      const found = await checkFile(file, sources);
      const own = found.problems.filter(({ where }) => where === file || where.startsWith(`${file}:`));
      lines.push(`${file}: ${found.key}, ${own.length === 0 ? "ok" : formatCount(own.length, "problem")}`);
      add(found);
    }
    const all = [...problems.values()];
    if (options["json"]) {
      printJson(io, { problems: all, warnings: [...warnings] });
    } else {
      if (all.length > 0) io.stderr.write(`${new ConfigError(all).message}\n`);
      for (const warning of warnings) io.stderr.write(`warning: ${warning}\n`);
      lines.push(`${formatCount(all.length, "problem")}, ${formatCount(warnings.size, "warning")}`);
      io.stdout.write(lines.map(line => `${line}\n`).join(""));
    }
    return all.length > 0 ? ExitCode.usage : ExitCode.ok;
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

/** The target is read as `--rate` reads it: a listed host, then a group, then a host that is not listed. */
function explanationOf(loaded: LoadedPolicy, target: string, role: Role): PolicyExplanation {
  const { options, resolved } = loaded.ratelimits;
  if (target.startsWith(RESOLVER_PREFIX)) {
    const resolver = target.slice(RESOLVER_PREFIX.length);
    const isListed = Object.hasOwn(loaded.breakers.options.resolvers ?? {}, resolver);
    const listing = `resolver ${resolver}, ${listedText(isListed)}`;
    return { names: { resolver }, listing, values: explainResolver(loaded, resolver) };
  }
  if (target.toLowerCase() === "defaults") {
    const values = [...explainLimits(loaded, {}, role), ...explainCircuit(loaded, undefined, role)];
    return {
      names: { target: "defaults", role },
      listing: `defaults (${role}), for hosts that are not listed`,
      values,
    };
  }
  const group = Object.keys(options.groups ?? {}).find(name => name.toLowerCase() === target.toLowerCase());
  if (group !== undefined && !Object.hasOwn(options.hosts ?? {}, canonicalHostIfValid(target))) {
    const members = options.groups?.[group]?.members?.join(", ") ?? "each host separately";
    const values = explainLimits(loaded, { group }, role);
    return { names: { group, role }, listing: `group ${group} (${role}): ${members}`, values };
  }
  const { host, path } = listedTarget(loaded, target);
  const isListedHost = Object.hasOwn(options.hosts ?? {}, host);
  const { name } = resolved.route(host, role, path);
  const listing = `${host} (${role}), ${name === host ? listedText(isListedHost) : `member of ${name}`}`;
  return { names: { host, role }, listing, values: explainPolicy(loaded, host, role, path) };
}

function listedText(isListed: boolean): string {
  return isListed ? "listed in the policy" : "not listed: the defaults apply";
}

/** The host as the policy lists it: with the port only if the policy lists that port. */
function listedTarget(
  policy: LoadedPolicy,
  text: string,
): { readonly host: string; readonly path: string | undefined } {
  const { host, port, path } = targetOf(text);
  const hosts = [policy.ratelimits.options.hosts ?? {}, policy.breakers.options.hosts ?? {}];
  const withPort = `${host}:${port}`;
  return { host: hosts.some(listed => Object.hasOwn(listed, withPort)) ? withPort : host, path };
}

/** A host, with or without a path, or a complete URL. */
function targetOf(text: string): { readonly host: string; readonly port: string; readonly path: string | undefined } {
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  try {
    const url = new URL(hasScheme ? text : `https://${text}`);
    return { host: urlHost(url).host, port: url.port, path: url.pathname === "/" ? undefined : url.pathname };
  } catch (error) {
    if (error instanceof TypeError) throw usageError("<target>", `${quote(text)} is neither a host nor a URL`);
    if (error instanceof RangeError) throw usageError("<target>", error.message);
    throw error;
  }
}

import { urlHost } from "../../core/text/host.ts";
import { ConfigError, type ConfigProblem } from "../../errors.ts";
import { unknownVariables } from "../../policy/environment.ts";
import { explainPolicy } from "../../policy/explanation.ts";
import { loadIdentities } from "../../policy/identities.ts";
import { checkFile, type LoadedPolicy, loadPolicy } from "../../policy/load.ts";
import { hostPolicyRows, policyRows } from "../../policy/policy-row.ts";
import { isRole, ROLES, unknownRoleMessage } from "../../policy/roles.ts";
import { warningsOf } from "../../policy/warnings.ts";
import { ExitCode } from "../exit-code.ts";
import { formatTable, terminalWidth } from "../output/table.ts";
import type { CommandModule, Subcommand } from "../program.ts";
import { addPolicyFlags, policySources } from "./policy-flags.ts";

const show: Subcommand = {
  name: "show",
  summary: "print the limits and breakers that hold",
  configure: command => {
    command.option("--host <host>", "only this host, all its roles").option("--json", "print JSON");
    addPolicyFlags(command);
  },
  run: async (_, options, io) => {
    const policy = await loadPolicy(policySources(options, io));
    const host = options["host"];
    const rows = typeof host === "string" ? hostPolicyRows(policy, listedTarget(policy, host)) : policyRows(policy);
    if (options["json"]) {
      io.stdout.write(`${JSON.stringify(rows, undefined, 2)}\n`);
      return ExitCode.ok;
    }
    const header = ["host", "role", "rates", "max delay", "HEAD", "at once", "fails / reset"];
    const cells = rows.map((row, index) => [
      rows[index - 1]?.host === row.host ? "" : row.host,
      row.role,
      row.rates || "unlimited",
      row.maxDelayMs === undefined ? "" : `${row.maxDelayMs} ms`,
      row.countsHead === undefined ? "" : row.countsHead ? "counts" : "free",
      row.maxConcurrent === undefined ? "" : String(row.maxConcurrent),
      row.failMax === undefined ? "" : `${row.failMax} / ${row.resetS} s`,
    ]);
    const { aimd, maxInFlight } = policy.ratelimits.resolved;
    const backend = policy.ratelimits.options.backend?.kind ?? "memory";
    const ceiling = Number.isFinite(maxInFlight) ? `at most ${maxInFlight} in flight` : "no ceiling in flight";
    io.stdout.write(`backend ${backend}, aimd ${aimd.enabled ? "on" : "off"}, ${ceiling}\n\n`);
    io.stdout.write(formatTable(header, cells, { columns: terminalWidth(io.stdout) }));
    const groups = Object.entries(policy.ratelimits.options.groups ?? {});
    if (host === undefined && groups.length > 0) {
      const members = groups.map(([group, { members: list = [] }]) => [`group ${group}`, list.join(", ")]);
      io.stdout.write(`\n${formatTable(["group", "members"], members)}`);
    }
    return ExitCode.ok;
  },
};

const explain: Subcommand = {
  name: "explain",
  summary: "say where each value for a host came from",
  configure: command => {
    command
      .argument("<host|url>")
      .argument("[role]", `one of ${ROLES.join(", ")}`, "metadata")
      .option("--json", "print JSON");
    addPolicyFlags(command);
  },
  run: async ([target = "", role = "metadata"], options, io) => {
    if (!isRole(role)) throw wrong("[role]", unknownRoleMessage(role));
    targetOf(target);
    const policy = await loadPolicy(policySources(options, io));
    const { host, path } = listedTarget(policy, target);
    const explained = explainPolicy(policy, host, role, path);
    if (options["json"]) {
      io.stdout.write(`${JSON.stringify({ host, role, values: explained }, undefined, 2)}\n`);
      return ExitCode.ok;
    }
    const { name } = policy.ratelimits.resolved.route(host, role, path);
    const isListed = name !== host || policy.ratelimits.options.hosts?.[host] !== undefined;
    const listingText =
      name !== host ? `as a member of ${name}` : isListed ? "as listed" : "not listed: the defaults hold";
    io.stdout.write(`${host} (${role}), ${listingText}\n`);
    if (!isListed && policy.ratelimits.options.groups?.[host] !== undefined) {
      io.stdout.write(
        `There is a group of that name; its members are ${policy.ratelimits.options.groups[host]?.members?.join(", ")}.\n`,
      );
    }
    io.stdout.write("\n");
    const rows = explained.flatMap(({ field, said }) =>
      said.map(({ where, path: place, value }, index) => {
        const isLast = index === said.length - 1;
        return [index === 0 ? field : "", isLast ? "=" : "", text(value), `${where}${place ? `  ${place}` : ""}`];
      }),
    );
    io.stdout.write(formatTable(["value", "", "", "said by (the last one holds, marked =)"], rows));
    return ExitCode.ok;
  },
};

const check: Subcommand = {
  name: "check",
  summary: "look for mistakes in the policy, or in files",
  configure: command => {
    command.argument("[file...]").option("--json", "print JSON");
    addPolicyFlags(command);
  },
  run: async (files, options, io) => {
    const problems: ConfigProblem[] = [];
    const warnings: string[] = [];
    for (const file of files) {
      const { key, problems: found } = await checkFile(file);
      problems.push(...found);
      if (!options["json"])
        io.stdout.write(`${file}: ${key}, ${found.length === 0 ? "ok" : count(found.length, "problem")}\n`);
    }
    if (files.length === 0) {
      try {
        const policy = await loadPolicy(policySources(options, io));
        await loadIdentities({ env: io.env });
        warnings.push(...warningsOf(policy), ...unknownVariables(io.env));
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        problems.push(...error.problems);
      }
    }
    if (options["json"]) io.stdout.write(`${JSON.stringify({ problems, warnings }, undefined, 2)}\n`);
    else {
      if (problems.length > 0) io.stderr.write(`${new ConfigError(problems).message}\n`);
      for (const warning of warnings) io.stderr.write(`warning: ${warning}\n`);
      io.stdout.write(`${count(problems.length, "problem")}, ${count(warnings.length, "warning")}\n`);
    }
    return problems.length > 0 ? ExitCode.usage : ExitCode.ok;
  },
};

/** `docstokg policy`: what holds, why, and whether it makes sense. */
export const policy: CommandModule = { commands: [show, explain, check] };

/** A port counts only where the policy names it. */
function listedTarget(
  policy: LoadedPolicy,
  text: string,
): { readonly host: string; readonly path: string | undefined } {
  const { host, port, path } = targetOf(text);
  const hosts = [policy.ratelimits.options.hosts ?? {}, policy.breakers.options.hosts ?? {}];
  const withPort = `${host}:${port}`;
  return { host: hosts.some(listed => Object.hasOwn(listed, withPort)) ? withPort : host, path };
}

/** A host, with or without a path, or a whole URL. */
function targetOf(text: string): { readonly host: string; readonly port: string; readonly path: string | undefined } {
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  try {
    const url = new URL(hasScheme ? text : `https://${text}`);
    return { host: urlHost(url).host, port: url.port, path: url.pathname === "/" ? undefined : url.pathname };
  } catch (error) {
    if (error instanceof TypeError)
      throw wrong("<host|url>", `${JSON.stringify(text.replace(/\/\/[^/@]*@/, "//…@"))} is neither a host nor a URL`);
    if (error instanceof RangeError) throw wrong("<host|url>", error.message);
    throw error;
  }
}

function wrong(where: string, message: string): ConfigError {
  return new ConfigError([{ where, path: "", message }]);
}

function text(value: unknown): string {
  return Array.isArray(value) ? value.join(" + ") : String(value);
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

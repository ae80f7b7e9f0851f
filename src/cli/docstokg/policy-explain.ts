import {
  type ExplainedValue,
  explainCircuit,
  explainLimits,
  explainPolicy,
  explainResolver,
  explainSettings,
  withheldKeysText,
} from "../../policy/explanation.ts";
import { canonicalHostIfValid } from "../../policy/layer.ts";
import { type LoadedPolicy, loadPolicy, namesHost } from "../../policy/load.ts";
import { memberList } from "../../policy/member.ts";
import { unknownServiceMessage } from "../../policy/overrides.ts";
import { isRole, type Role, unknownRoleMessage } from "../../policy/roles.ts";
import type { PolicyTarget } from "../../policy/target.ts";
import { ExitCode } from "../exit-code.ts";
import { printJson } from "../output/json.ts";
import { terminalWidth } from "../output/table.ts";
import type { RunCommand } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { policySources } from "./policy-flags.ts";
import { targetOf } from "./policy-target.ts";
import { isThrottles, notesText, slotsText, sourcesTable, textLines, throttlesText } from "./policy-text.ts";

const RESOLVER_PREFIX = "resolver:";
const SERVICE_PREFIX = /^service:/i;
/** Names a host even if a service has the same name, as in `--rate`. */
const HOST_PREFIX = /^host:/i;

/** `docstokg policy explain`. */
export const explainTarget: RunCommand = async ([target = "", givenRole], options, io) => {
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
  const { rules, others } = Object.groupBy(values, ({ field }) => (isThrottles(field) ? "rules" : "others"));
  io.stdout.write(`${textLines(listing, columns).join("\n")}\n\n${sourcesTable(others ?? [], columns)}`);
  io.stdout.write(`${slotsText(values, columns)}${throttlesText(rules ?? [], columns)}${notesText(values, columns)}`);
  io.stdout.write(`\nfor all hosts\n\n${sourcesTable(settings, columns)}`);
  return ExitCode.ok;
};

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
    if (resolver === "") throw usageError("<target>", "the name of the resolver is missing: resolver:<name>");
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
  return explanationOfHost(loaded, targetOf(loaded, target.replace(HOST_PREFIX, ""), "<target>"), role);
}

function explanationOfHost(loaded: LoadedPolicy, target: PolicyTarget, role: Role): PolicyExplanation {
  const { host, path, sentKeys } = target;
  const { service, listed = [], tiers = [] } = loaded.ratelimits.resolved.scopeOf(host, path, sentKeys);
  const { name } = loaded.ratelimits.resolved.route(host, role, path, sentKeys);
  const { circuit, cooldown } = loaded.breakers.resolved.route(host, path);
  const membership =
    service === undefined ? listedText(listed.length > 0 || namesHost(loaded, host)) : `member of service ${service}`;
  const keys = `${tiers.length === 0 ? "" : `, with ${tiers.join(" and ")}`}${withheldKeysText(loaded, target)}`;
  const listing = `${host} (${role}), ${membership}${keys}`;
  const names = { host, role, ...(service === undefined ? {} : { service }), key: name, circuit, cooldown };
  return { names, listing, values: explainPolicy(loaded, host, role, path, sentKeys) };
}

/** The service that a target names: `service:<name>`, or the name alone when no host of that name is listed. */
function serviceIn({ ratelimits: { options } }: LoadedPolicy, target: string): string | undefined {
  const services = Object.keys(options.services ?? {});
  const isPrefixed = SERVICE_PREFIX.test(target);
  const name = target.replace(SERVICE_PREFIX, "");
  const found = services.find(service => service.toLowerCase() === name.toLowerCase());
  if (isPrefixed && found === undefined) throw usageError("<target>", unknownServiceMessage(name, services));
  return isPrefixed || !Object.hasOwn(options.hosts ?? {}, canonicalHostIfValid(target)) ? found : undefined;
}

function listedText(isListed: boolean): string {
  return isListed ? "listed in the policy" : "not listed: the defaults apply";
}

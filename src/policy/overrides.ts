/** Overrides as the environment and the command line write them: `rates:3/SECOND,count_head=false`. */
import { NO_LIMIT } from "../core/limits/rate.ts";
import { canonicalHost } from "../core/text/host.ts";
import { nearest } from "../core/text/nearest.ts";
import { quote } from "../core/text/quote.ts";
import { type Assignment, canonicalHostIfValid, FORBIDDEN_KEYS } from "./layer.ts";
import { ROLES } from "./roles.ts";

/** Shorter names of fields, for variables and flags. */
export const SHORT_NAMES: ReadonlyMap<string, string> = new Map([
  ["reset", "reset_timeout_s"],
  ["thresh", "threshold_failures"],
  ["window", "window_s"],
  ["cooldown", "cooldown_s"],
  ["decrease", "decrease_step_pct"],
  ["increase", "increase_step_pct"],
  ["retry_after_cap", "retry_after_cap_s"],
]);

const DEFAULTS = "defaults";
const RESOLVER_PREFIX = "resolver:";
const ROLE_LIST = `${ROLES.slice(0, -1).join(", ")} or ${ROLES.at(-1)}`;

/** Names in the policy files, needed to tell a service from a host: `--rate arxiv:total=…` changes the service arxiv. */
export interface KnownNames {
  readonly hosts: ReadonlySet<string>;
  readonly services: ReadonlySet<string>;
}

/** Reads the text of one override. Throws a RangeError that quotes the text. */
export type OverrideReader = (text: string, where: string, names: KnownNames) => readonly Assignment[];

/** Reads fields of a limit; a value without a key is the rates: `3/SECOND+100/HOUR,max_delay_ms:500`. */
function readLimitFields(text: string, path: readonly string[], where: string): readonly Assignment[] {
  return readFields(text.replace(/^\s*(?=(?:\d[^:=,]*|none\s*)(?:,|$))/i, "rates:"), path, where);
}

/** Reads `key:value` or `key=value`, joined by commas, as fields of one path. */
export function readFields(text: string, path: readonly string[], where: string): readonly Assignment[] {
  const fields = text.split(",").filter(field => field.trim() !== "");
  if (fields.length === 0)
    throw new RangeError(`no field is set in ${JSON.stringify(text)}; expected <key>:<value>, joined by commas`);
  return fields.map(field => {
    const [, key = "", value = ""] = /^\s*([a-z_0-9.]+)\s*[:=]\s*(.*?)\s*$/i.exec(field) ?? [];
    if (key === "" || value === "")
      throw new RangeError(`${JSON.stringify(field.trim())} has no value or no key; expected <key>:<value>`);
    const name = SHORT_NAMES.get(key.toLowerCase()) ?? key.toLowerCase();
    // `costs.credits` is one unit of the map `costs`.
    const keys = name.split(".");
    if (keys.some(each => FORBIDDEN_KEYS.has(each))) throw new RangeError(`unknown key ${JSON.stringify(key)}`);
    const isRate = keys[0] === "rates" || keys[0] === "costs";
    return { path: [...path, ...keys], value: isRate ? rateText(value) : parseScalar(value), where };
  });
}

/** Rates may be written in any case, so `none` may too. */
function rateText(value: string): string {
  return value.toLowerCase() === NO_LIMIT ? NO_LIMIT : value;
}

/** Reads `host:role=fields` of the limits. In place of the host: a service, or `defaults`. */
export const readRateOverride: OverrideReader = (text, where, names) => {
  const { name, fields } = splitEntry(text);
  const { target, role } = splitRole(name);
  if (role === undefined)
    throw new RangeError(
      `${JSON.stringify(name)} names no role; expected <host>:<role> or service:<name>:<role>, with role ${ROLE_LIST}, or total`,
    );
  const path = targetPath(target, names);
  if (path[0] === DEFAULTS && role === "total")
    throw new RangeError(
      `${JSON.stringify(name)}: the defaults have no total; name a role (${ROLE_LIST}), or the total of a host or service`,
    );
  return readLimitFields(fields, [...path, role], where);
};

/**
 * Reads `host=fields`, `host:role=fields` or `resolver:name=fields` of the breakers. In place of the host: a service, or
 * `defaults`.
 */
export const readBreakerOverride: OverrideReader = (text, where, names) => {
  const { name, fields } = splitEntry(text);
  if (name.startsWith(RESOLVER_PREFIX)) return readResolverOverride(text, where, names);
  const { target, role } = splitRole(name);
  if (role === "total")
    throw new RangeError(`${JSON.stringify(name)}: breakers have no total; name a role (${ROLE_LIST})`);
  const path = targetPath(target, names);
  return readFields(fields, role === undefined ? path : [...path, "roles", role], where);
};

/** Reads `name=fields` or `resolver:name=fields` of a resolver's circuit. */
export const readResolverOverride: OverrideReader = (text, where) => {
  const { name, fields } = splitEntry(text);
  const { target, role } = splitRole(name);
  if (role !== undefined)
    throw new RangeError(
      `${JSON.stringify(name)}: a resolver has one circuit for all roles; leave out ${JSON.stringify(`:${role}`)}`,
    );
  const resolver = target.startsWith(RESOLVER_PREFIX) ? target.slice(RESOLVER_PREFIX.length) : target;
  return readFields(fields, ["resolvers", resolver], where);
};

/** Reads `host:role=fields` of the breakers. The role is required: without it the override would change every role. */
export const readBreakerRoleOverride: OverrideReader = (text, where, names) => {
  const { name } = splitEntry(text);
  if (splitRole(name).role === undefined)
    throw new RangeError(`${JSON.stringify(name)} names no role; expected <host>:<role>, with role ${ROLE_LIST}`);
  return readBreakerOverride(text, where, names);
};

/** Several entries joined by `;`. */
export function splitList(text: string): readonly string[] {
  return text
    .split(";")
    .map(entry => entry.trim())
    .filter(entry => entry !== "");
}

/** Numbers and booleans as such, everything else as text. */
export function parseScalar(text: string): unknown {
  if (/^(?:true|false)$/i.test(text)) return text.toLowerCase() === "true";
  return /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text;
}

export function unknownServiceMessage(name: string, services: Iterable<string>): string {
  const suggested = nearest(name, services);
  const hint =
    suggested === undefined ? `the policy has ${[...services].join(", ") || "none"}` : `did you mean ${suggested}?`;
  return `unknown service ${JSON.stringify(name)}; ${hint}`;
}

/**
 * The entry that a target names: `defaults`, `service:<name>` or `host:<host>`. A bare name is a listed host, then a
 * service, then a host that the override adds.
 */
function targetPath(target: string, { hosts, services }: KnownNames): readonly string[] {
  const [prefix = "", rest = ""] = splitPrefix(target);
  if (target.toLowerCase() === DEFAULTS) return [DEFAULTS];
  if (prefix === "host") return ["hosts", canonicalHost(rest)];
  const name = prefix === "service" ? rest : target;
  const service = services.has(name) ? name : [...services].find(other => other.toLowerCase() === name.toLowerCase());
  if (prefix === "service") {
    if (service === undefined) throw new RangeError(unknownServiceMessage(name, services));
    return ["services", service];
  }
  if (hosts.has(canonicalHostIfValid(target))) return ["hosts", canonicalHost(target)];
  if (service !== undefined) return ["services", service];
  return ["hosts", newHost(target, hosts, services)];
}

/** `service:<name>` and `host:<host>` as two parts. A host that is called service or host needs the prefix. */
function splitPrefix(target: string): readonly string[] {
  return (
    /^(service|host):(.+)$/i
      .exec(target)
      ?.slice(1)
      .map((part, index) => (index === 0 ? part.toLowerCase() : part)) ?? []
  );
}

/**
 * A host that no file lists. Throws a RangeError for a name that probably means something else: a key of the file, a
 * misspelled service, or a listed host with underscores in place of its dots, which shells cannot export.
 */
function newHost(target: string, hosts: ReadonlySet<string>, services: ReadonlySet<string>): string {
  const meant = keyedTarget(target, hosts, services);
  if (meant !== undefined)
    throw new RangeError(
      `${JSON.stringify(target)} is not a listed host; did you mean ${meant}? (host:${target} adds a host of that name)`,
    );
  const host = canonicalHost(target);
  const dotted = host.replaceAll("_", ".");
  if (dotted !== host && hosts.has(dotted))
    throw new RangeError(
      `${JSON.stringify(target)} is not a listed host; did you mean ${dotted}? A name with dots can be written in the lists DOCSTOKG_RLIMITS and DOCSTOKG_BREAKERS (host:${target} adds a host of that name)`,
    );
  const suggested = host.includes(".") || host.includes(":") ? undefined : nearest(target, services);
  if (suggested !== undefined)
    throw new RangeError(
      `${JSON.stringify(target)} is neither a listed host nor a service; did you mean service:${suggested}? (host:${target} adds a host of that name)`,
    );
  return host;
}

/**
 * The target that a name with a key of the file before it probably means: `service:arxiv` for `services.arxiv`. Undefined
 * if the rest is not known, as in the host services.example.org.
 */
function keyedTarget(target: string, hosts: ReadonlySet<string>, services: ReadonlySet<string>): string | undefined {
  const [, key = "", name = ""] = /^(groups|services|hosts|defaults)\.(.+)$/i.exec(target) ?? [];
  if (key === "") return undefined;
  const isPlain = !name.includes(".");
  if (key.toLowerCase() === DEFAULTS) return isPlain ? DEFAULTS : undefined;
  if (key.toLowerCase() === "hosts") return hosts.has(canonicalHostIfValid(name)) ? `host:${name}` : undefined;
  const service =
    [...services].find(other => other.toLowerCase() === name.toLowerCase()) ??
    (isPlain ? nearest(name, services) : undefined);
  return service === undefined ? undefined : `service:${service}`;
}

function splitEntry(text: string): { readonly name: string; readonly fields: string } {
  const equals = text.indexOf("=");
  if (equals < 1) {
    const missing = equals === 0 ? 'no name before "="' : 'no "="';
    throw new RangeError(`${JSON.stringify(text)} has ${missing}; expected <name>=<key>:<value>,...`);
  }
  const name = text.slice(0, equals).trim();
  // A URL is refused before it is split: a later message could quote a part of it that is a password.
  if (name.includes("://")) throw new RangeError(`${quote(text)} begins with a URL; expected <name>=<key>:<value>,...`);
  return { name, fields: text.slice(equals + 1) };
}

/** The role follows the last colon; an earlier colon belongs to the host's port. */
function splitRole(name: string): { readonly target: string; readonly role: string | undefined } {
  const colon = name.lastIndexOf(":");
  const role = name.slice(colon + 1).toLowerCase();
  const isRole = colon > 0 && [...ROLES, "total"].includes(role);
  return isRole ? { target: name.slice(0, colon), role } : { target: name, role: undefined };
}

/** Overrides as the environment and the command line write them: `rates:3/SECOND,count_head=false`. */
import { canonicalHost } from "../core/text/host.ts";
import { quote } from "../core/text/quote.ts";
import { type Assignment, canonicalHostIfValid } from "./layer.ts";
import { ROLES } from "./roles.ts";

const SHORT_NAMES: Readonly<Record<string, string>> = {
  reset: "reset_timeout_s",
  thresh: "threshold_failures",
  window: "window_s",
  cooldown: "cooldown_s",
  decrease: "decrease_step_pct",
  increase: "increase_step_pct",
  retry_after_cap: "retry_after_cap_s",
};

const DEFAULTS = "defaults";
const ROLE_LIST = `${ROLES.slice(0, -1).join(", ")} or ${ROLES.at(-1)}`;

/** Names in the policy files, needed to tell a group from a host: `--rate arxiv:total=...` changes the group arxiv. */
export interface KnownNames {
  readonly hosts: ReadonlySet<string>;
  readonly groups: ReadonlySet<string>;
}

/** Reads the text of one override. Throws a RangeError that quotes the text. */
export type OverrideReader = (text: string, where: string, names: KnownNames) => readonly Assignment[];

/** Reads `key:value` or `key=value`, joined by commas, as fields of one path. */
export function readFields(text: string, path: readonly string[], where: string): readonly Assignment[] {
  const fields = text.split(",").filter(field => field.trim() !== "");
  if (fields.length === 0)
    throw new RangeError(
      `no field is set in ${JSON.stringify(text)}; write for example rates:3/SECOND,count_head:false`,
    );
  return fields.map(field => {
    const [, key = "", value = ""] = /^\s*([a-z_0-9]+)\s*[:=]\s*(.*?)\s*$/i.exec(field) ?? [];
    if (key === "" || value === "")
      throw new RangeError(`${JSON.stringify(field.trim())} has no value or no key; expected <key>:<value>`);
    const name = SHORT_NAMES[key.toLowerCase()] ?? key.toLowerCase();
    return { path: [...path, name], value: name === "rates" ? value : parseScalar(value), where };
  });
}

/** Reads `host:role=fields` of the limits. In place of the host: a group, or `defaults`. */
export const readRateOverride: OverrideReader = (text, where, names) => {
  const { name, fields } = splitEntry(text);
  const { target, role } = splitRole(name);
  if (role === undefined)
    throw new RangeError(
      `${JSON.stringify(name)} names no role; expected <host>:<role>, with role ${ROLE_LIST}, or total`,
    );
  if (isDefaults(target) && role === "total")
    throw new RangeError(
      `${JSON.stringify(name)}: the defaults have no total; name a role (${ROLE_LIST}), or the total of a host or group`,
    );
  return readFields(fields, [...limitPath(target, names), role], where);
};

/** Reads `host=fields`, `host:role=fields` or `resolver:name=fields` of the breakers. In place of the host: `defaults`. */
export const readBreakerOverride: OverrideReader = (text, where) => {
  const { name, fields } = splitEntry(text);
  if (name.startsWith("resolver:")) return readFields(fields, ["resolvers", name.slice("resolver:".length)], where);
  const { target, role } = splitRole(name);
  const path = isDefaults(target) ? [DEFAULTS] : ["hosts", canonicalHost(target)];
  return readFields(fields, role === undefined ? path : [...path, "roles", role], where);
};

/** Reads `host:role=fields` of the breakers. The role is required: without it the override would change every role. */
export const readBreakerRoleOverride: OverrideReader = (text, where, names) => {
  const { name } = splitEntry(text);
  if (splitRole(name).role === undefined)
    throw new RangeError(`${JSON.stringify(name)} names no role; expected <host>:<role>, with role ${ROLE_LIST}`);
  return readBreakerOverride(text, where, names);
};

/** Reads several entries joined by `;`. */
export function readList(text: string, read: (entry: string) => readonly Assignment[]): readonly Assignment[] {
  return text
    .split(";")
    .filter(entry => entry.trim() !== "")
    .flatMap(entry => read(entry.trim()));
}

/** Numbers and booleans as such, everything else as text. */
export function parseScalar(text: string): unknown {
  if (/^(?:true|false)$/i.test(text)) return text.toLowerCase() === "true";
  return /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text;
}

function isDefaults(target: string): boolean {
  return target.toLowerCase() === DEFAULTS;
}

/** A listed host, then a group, then a host that the override adds. */
function limitPath(target: string, { hosts, groups }: KnownNames): readonly string[] {
  if (isDefaults(target)) return [DEFAULTS];
  const group = [...groups].find(name => name.toLowerCase() === target.toLowerCase());
  if (group !== undefined && !hosts.has(canonicalHostIfValid(target))) return ["groups", group];
  return ["hosts", canonicalHost(target)];
}

function splitEntry(text: string): { readonly name: string; readonly fields: string } {
  const equals = text.indexOf("=");
  if (equals < 1) throw new RangeError(`${JSON.stringify(text)} has no "="; expected <name>=<key>:<value>,...`);
  const name = text.slice(0, equals).trim();
  // Not split: a part of a URL, quoted alone in a later message, may be a password.
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

/** Overrides as they are written in the environment and on the command line: `rates:3/SECOND,count_head=false`. */
import { canonicalHost } from "../core/text/host.ts";
import type { Assignment } from "./layer.ts";
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

/** Reads `key:value` or `key=value`, joined by commas, for one place. Throws a RangeError that names the input. */
export function readFields(text: string, path: readonly string[], where: string): readonly Assignment[] {
  const fields = text.split(",").filter(field => field.trim() !== "");
  if (fields.length === 0)
    throw new RangeError(`${JSON.stringify(text)} sets nothing; write for example rates:3/SECOND,count_head:false`);
  return fields.map(field => {
    const [, key = "", value = ""] = /^\s*([a-z_0-9]+)\s*[:=]\s*(.*?)\s*$/i.exec(field) ?? [];
    if (key === "" || value === "") throw new RangeError(`${JSON.stringify(field.trim())} is not <key>:<value>`);
    const name = SHORT_NAMES[key.toLowerCase()] ?? key.toLowerCase();
    return { path: [...path, name], value: name === "rates" ? value : parseScalar(value), where };
  });
}

/** Reads `host:role=fields` (limits). */
export function readRateOverride(text: string, where: string): readonly Assignment[] {
  const { name, fields } = splitEntry(text);
  const { host, role } = splitRole(name);
  if (role === undefined)
    throw new RangeError(`${JSON.stringify(name)} is not <host>:<role>; the roles are ${ROLES.join(", ")} and total`);
  return readFields(fields, ["hosts", canonicalHost(host), role], where);
}

/** Reads `host=fields`, `host:role=fields` or `resolver:name=fields` (breakers). */
export function readBreakerOverride(text: string, where: string): readonly Assignment[] {
  const { name, fields } = splitEntry(text);
  if (name.startsWith("resolver:")) return readFields(fields, ["resolvers", name.slice("resolver:".length)], where);
  const { host, role } = splitRole(name);
  const path = ["hosts", canonicalHost(host)];
  return readFields(fields, role === undefined ? path : [...path, "roles", role], where);
}

/** Reads `host:role=fields` (breakers), and nothing less: without its role it would change the whole host. */
export function readBreakerRoleOverride(text: string, where: string): readonly Assignment[] {
  const { name } = splitEntry(text);
  if (splitRole(name).role === undefined)
    throw new RangeError(`${JSON.stringify(name)} is not <host>:<role>; the roles are ${ROLES.join(", ")}`);
  return readBreakerOverride(text, where);
}

/** Reads several entries joined by `;`. */
export function readList(
  text: string,
  where: string,
  read: (entry: string, where: string) => readonly Assignment[],
): readonly Assignment[] {
  return text
    .split(";")
    .filter(entry => entry.trim() !== "")
    .flatMap(entry => read(entry.trim(), where));
}

/** Numbers and truth values as such, everything else as the text it is. */
export function parseScalar(text: string): unknown {
  if (/^(?:true|false)$/i.test(text)) return text.toLowerCase() === "true";
  return /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text;
}

function splitEntry(text: string): { readonly name: string; readonly fields: string } {
  const equals = text.indexOf("=");
  if (equals < 1) throw new RangeError(`${JSON.stringify(text)} is not <name>=<key>:<value>,…`);
  return { name: text.slice(0, equals).trim(), fields: text.slice(equals + 1) };
}

/** The role stands behind the last colon; any other colon belongs to the host's port. */
function splitRole(name: string): { readonly host: string; readonly role: string | undefined } {
  const colon = name.lastIndexOf(":");
  const role = name.slice(colon + 1).toLowerCase();
  const isRole = colon > 0 && [...ROLES, "total"].includes(role);
  return isRole ? { host: name.slice(0, colon), role } : { host: name, role: undefined };
}

import { optionHint } from "../core/text/nearest.ts";
import { LOOPBACK_NAMES } from "./request-guard.ts";

const OPTIONS = ["basePath", "token", "hosts", "readOnly", "onAction", "time"] as const;
const TOKEN_CHARS_MIN = 16;

/**
 * Throws a RangeError for an unknown option and for an invalid value. A misspelled `readOnly` must not be ignored: the
 * page could change the limits.
 */
export function checkDashboardOptions(options: object): void {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new RangeError(`the options of createDashboard must be an object, not ${shown(options)}`);
  for (const [name, value] of Object.entries(options)) {
    const problem = problemOf(name, value);
    if (problem !== undefined) throw new RangeError(problem);
  }
}

function problemOf(name: string, value: unknown): string | undefined {
  if (OPTIONS.every(known => known !== name)) {
    return `unknown option ${name} of createDashboard: ${optionHint(name, OPTIONS)}`;
  }
  if (value === undefined) return undefined;
  switch (name) {
    case "token":
      if (value === false || (typeof value === "string" && isToken(value))) return undefined;
      return `token must have at least ${TOKEN_CHARS_MIN} characters, of A-Z a-z 0-9 _ . ~ -`;
    case "basePath":
      if (value === "" || (typeof value === "string" && /^(?:\/[\w.~-]+)+$/.test(value))) return undefined;
      return `basePath must be a path such as "/ops", not ${shown(value)}`;
    case "readOnly":
      return typeof value === "boolean" ? undefined : `readOnly must be true or false, not ${shown(value)}`;
    case "onAction":
      return typeof value === "function" ? undefined : `onAction must be a function, not ${shown(value)}`;
    case "hosts":
      allowedHosts(value);
      return undefined;
    default:
      return undefined;
  }
}

function isToken(text: string): boolean {
  return text.length >= TOKEN_CHARS_MIN && /^[\w.~-]+$/.test(text);
}

/**
 * The names under which requests are served, as browsers write them; undefined for every name. Throws a RangeError for
 * anything but host names without a port: with a port, each request would be refused.
 */
export function allowedHosts(hosts: unknown = [...LOOPBACK_NAMES]): ReadonlySet<string> | undefined {
  if (hosts === "any") return undefined;
  if (!Array.isArray(hosts) || hosts.length === 0)
    throw new RangeError(`hosts must be "any" or a list of host names, not ${shown(hosts)}`);
  return new Set(hosts.map(hostName));
}

function hostName(name: unknown): string {
  const url = typeof name === "string" && !/[\s/\\?#@]/.test(name) ? URL.parse(`https://${name}`) : null;
  if (url !== null && url.port === "" && !/:\d*$/.test(String(name))) return url.hostname;
  throw new RangeError(`hosts must be names without a port, such as "ops.example.org" or "[::1]", not ${shown(name)}`);
}

function shown(value: unknown): string {
  return typeof value === "function" ? "a function" : (JSON.stringify(value) ?? String(value));
}

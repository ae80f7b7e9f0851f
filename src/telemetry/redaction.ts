/**
 * Removes secrets from the text fields of events. Events have no URL and no header, but error messages and the texts of
 * operators may quote them.
 */
import { isPrivateName } from "../core/text/credentials.ts";
import { EVENT_SPECS, type FieldSpec } from "./event-fields.ts";
import type { EventType } from "./events.ts";

/** A quick test. It matches every text that one of the expressions below matches. */
const SUSPICIOUS = /[=@:]|%3D|bearer\s|basic\s/i;
const USER_INFO = /\/\/[^\s/?#]*@/g;
/** The local part of an email address. A version such as `undici@8.1.0` is no address. */
const MAIL_NAME = /(?<![\w.+-])[\w.+-]+@(?=[\w-]+(?:\.[\w-]+)*\.[a-z]{2,})/gi;
const SCHEME = /\b(bearer|basic)\s+[\w.~+/-]{8,}=*/gi;
/** A name and what separates it from its value. Hosts with a port, as in `redis://auth-store:6379`, are no names. */
const NAMED = /(?<![\w-]|\/\/|@)((?:api |access )?[\w-]+)(["']?\s*[:=]\s*|%3D)/gi;
const VALUE = /"[^"]*"?|'[^']*'?|[^\s&;,"'#)]+/y;
const LINE = /[^\r\n]+/y;
/** Their values may have several parameters, so the rest of the line is removed. */
const LINE_LONG: ReadonlySet<string> = new Set(["authorization", "proxy-authorization", "cookie", "set-cookie"]);
/** In prose these words have other meanings: only `key=value` is redacted, and `code=` only in a query. */
const ORDINARY_IN_PROSE: ReadonlySet<string> = new Set(
  "assertion auth code cookies credential credentials key mail pass session sid sig ticket verifier".split(" "),
);

/** The text without user names and passwords in URLs, email addresses, and values of names that `isPrivateName` accepts. */
export function redactedText(text: string): string {
  if (!SUSPICIOUS.test(text)) return text;
  return withoutNamedSecrets(text.replace(USER_INFO, "//…@")).replace(SCHEME, "$1 …").replace(MAIL_NAME, "…@");
}

function withoutNamedSecrets(text: string): string {
  let redacted = "";
  let at = 0;
  for (const { 0: matched, 1: name = "", 2: separator = "", index } of text.matchAll(NAMED)) {
    if (index < at || !isPrivateName(name) || isProse(name.toLowerCase(), separator, text[index - 1])) continue;
    const value = LINE_LONG.has(name.toLowerCase()) ? LINE : VALUE;
    value.lastIndex = index + matched.length;
    if (!value.test(text)) continue;
    redacted += `${text.slice(at, index + matched.length)}…`;
    at = value.lastIndex;
  }
  return redacted + text.slice(at);
}

function isProse(name: string, separator: string, before: string | undefined): boolean {
  if (!ORDINARY_IN_PROSE.has(name)) return false;
  if (name === "code") return before !== "?" && before !== "&";
  return separator !== "=" && separator.toLowerCase() !== "%3d";
}

/** Fields that hold only host names, hashes, rates or fixed words. */
const SAFE_FIELDS: ReadonlySet<string> = new Set([
  ...["host", "key", "role", "method", "mode", "outcome", "rates", "state", "what", "by", "sink", "url_hash"],
  ...["breaker_host_state", "breaker_resolver_state", "breaker_recorded", "config_hash"],
]);

/** The text fields of each event type that need redaction. */
const REDACTED_FIELDS = new Map<string, readonly string[]>(
  Object.entries(EVENT_SPECS).map(([type, { fields }]) => [
    type,
    (Object.entries(fields) as [string, FieldSpec][])
      .filter(([name, [kind]]) => kind.includes("text") && !SAFE_FIELDS.has(name))
      .map(([name]) => name),
  ]),
);

/** Redacts the text fields of an event in place. `fields` must not be shared with other listeners. */
export function redact(type: EventType, fields: Record<string, unknown>): void {
  for (const name of REDACTED_FIELDS.get(type) ?? []) {
    const value = fields[name];
    if (typeof value === "string") fields[name] = redactedText(value);
  }
}

/**
 * Removes secrets from the text fields of events. Events have no URL and no header, but error messages and the texts of
 * operators may quote them.
 */
import { EVENT_SPECS, type FieldSpec } from "./event-fields.ts";
import type { EventType } from "./events.ts";

/** A quick test. It matches every text that one of the expressions below matches. */
const SUSPICIOUS = /[=@]|%3D|authorization|bearer|basic\s|key|token|secret|passw|pwd|signature|mail/i;
const CREDENTIALS = /\/\/[^\s/?#]*@/g;
const SECRETS =
  /(?<![a-z0-9])((?:x-)?api[_-]?key|apikey|(?:access[_-]?|auth[_-]?)?token|secret|password|passwd|pwd|signature|e?-?mail|mailto)(["']?\s*[:=]\s*|%3D)("[^"]*"|'[^']*'|[^\s&;,"'#)]+)/gi;
/** Only with `=`: in prose these short words have other meanings. */
const SHORT_SECRETS = /(?<![a-z0-9])(key|sig)(=|%3D)("[^"]*"|'[^']*'|[^\s&;,"'#)]+)/gi;
/** To the end of the line, because some schemes have several parameters. */
const AUTHORIZATION = /(?<![a-z0-9])(proxy-)?authorization(["']?\s*[:=]\s*)[^\r\n]+/gi;
const SCHEME = /\b(bearer|basic)\s+[\w.~+/-]{8,}=*/gi;

/** The text without credentials, keys and mail addresses. */
export function redactedText(text: string): string {
  if (!SUSPICIOUS.test(text)) return text;
  return text
    .replace(CREDENTIALS, "//…@")
    .replace(SECRETS, "$1$2…")
    .replace(SHORT_SECRETS, "$1$2…")
    .replace(AUTHORIZATION, "$1authorization$2…")
    .replace(SCHEME, "$1 …");
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

/**
 * Removes secrets from the text fields of events. Events have no URL and no header, but error messages and the texts of
 * operators may quote them.
 */
import { redactedText } from "../core/text/redaction.ts";
import { EVENT_SPECS } from "./event-fields.ts";
import type { EventBody } from "./events.ts";
import type { FieldSpec } from "./fields/event-spec.ts";

/**
 * Fields that hold only host names, hashes, rates or fixed words. `by` was redacted when the order was given; it may be
 * `user@machine`, which looks like an email address.
 */
const SAFE_FIELDS: ReadonlySet<string> = new Set([
  ...["host", "key", "role", "method", "mode", "outcome", "rates", "state", "what", "by", "sink", "url_hash"],
  ...["breaker_host_state", "breaker_resolver_state", "breaker_recorded", "config_hash"],
  ...["call_id", "final_host", "cause", "connection"],
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

/** Texts and what they become. Most texts repeat: they name a setting, an error or a resolver. */
const redactedTexts = new Map<string, string>();
const REMEMBERED_TEXTS_MAX = 256;
const REMEMBERED_LENGTH_MAX = 200;

function redactedField(text: string): string {
  const known = redactedTexts.get(text);
  if (known !== undefined) return known;
  const redacted = redactedText(text);
  if (text.length > REMEMBERED_LENGTH_MAX) return redacted;
  if (redactedTexts.size >= REMEMBERED_TEXTS_MAX) redactedTexts.clear();
  redactedTexts.set(text, redacted);
  return redacted;
}

/** The event without secrets in its text fields: the same object if there are none. */
export function redacted<Event extends EventBody>(event: Event): Event {
  const fields = event as unknown as Readonly<Record<string, unknown>>;
  let changed: Record<string, unknown> | undefined;
  for (const name of REDACTED_FIELDS.get(event.event_type) ?? []) {
    const value = fields[name];
    if (typeof value !== "string") continue;
    const text = redactedField(value);
    if (text === value) continue;
    changed ??= { ...fields };
    changed[name] = text;
  }
  return (changed as Event | undefined) ?? event;
}

/**
 * Events carry no URL and no header field. Their free texts, the messages of drivers and the words of operators, may
 * quote either; so every text that could be one is looked through.
 */

const SUSPICIOUS = /[=@]|authorization|bearer|basic\s|key|token|secret|passw|mail/i;
const CREDENTIALS = /\/\/[^\s/?#]*@/g;
const SECRETS =
  /\b((?:x-)?api[_-]?key|apikey|(?:access[_-]?|auth[_-]?)?token|secret|password|passwd|pwd|signature|e?-?mail|mailto)(["']?\s*[:=]\s*|%3D)("[^"]*"|[^\s&;,"'#)]+)/gi;
/** Too short to mean the same in prose. */
const SHORT_SECRETS = /\b(key|sig)(=|%3D)("[^"]*"|[^\s&;,"'#)]+)/gi;
const AUTHORIZATION =
  /\b(proxy-)?authorization(["']?\s*[:=]\s*["']?)(?:(?:bearer|basic|digest|apikey|token)\s+)?[^\s"']+/gi;
const SCHEME = /\b(bearer|basic)\s+[\w.~+/-]{8,}=*/gi;

/** The text without what gives access, or names a person. */
export function redactedText(text: string): string {
  if (!SUSPICIOUS.test(text)) return text;
  return text
    .replace(CREDENTIALS, "//…@")
    .replace(SECRETS, "$1$2…")
    .replace(SHORT_SECRETS, "$1$2…")
    .replace(AUTHORIZATION, "$1authorization$2…")
    .replace(SCHEME, "$1 …");
}

/** Redacts the texts of an object that was made for this purpose, in place. */
export function redact(fields: Record<string, unknown>): void {
  for (const name in fields) {
    const value = fields[name];
    if (typeof value === "string" && value.length > 6) fields[name] = redactedText(value);
  }
}

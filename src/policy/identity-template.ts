/**
 * Templates of identification: text with placeholders in braces. `{mailto}` and `{tool}` are built in; a name in
 * capitals is an environment variable.
 */
const PLACEHOLDER = /\{([^{}]*)\}/g;
const PUBLIC_PLACEHOLDERS: ReadonlySet<string> = new Set(["mailto", "tool"]);
const VARIABLE = /^[A-Z_][A-Z0-9_]*$/;
/** Probably a misspelt placeholder. Other text in braces may be a key, so a message does not quote it. */
const NAME = /^[a-zA-Z_]{1,24}$/;

/** ASCII without control characters, because a line break would end a header field, and without spaces at its ends. */
const PRINTABLE = /^[!-~](?:[ -~]*[!-~])?$/;

/** The problem of a template, or undefined. The message quotes only names in braces: the rest of the text may be a key. */
export function templateProblem(template: string): string | undefined {
  for (const [, name = ""] of template.matchAll(PLACEHOLDER)) {
    if (!PUBLIC_PLACEHOLDERS.has(name) && !VARIABLE.test(name)) {
      const shown = NAME.test(name) ? ` {${name}}` : "";
      return `unknown placeholder${shown}; expected {mailto}, {tool} or an environment variable in capitals, such as {API_KEY}`;
    }
  }
  const text = template.replace(PLACEHOLDER, "x");
  if (/[{}]/.test(text)) return "unmatched brace";
  return isPrintable(text) ? undefined : "expected printable ASCII without leading or trailing spaces";
}

/** The names of a template's placeholders, each once. */
export function placeholdersOf(template: string): readonly string[] {
  return [...new Set([...template.matchAll(PLACEHOLDER)].map(([, name = ""]) => name))];
}

/** True for {mailto} and {tool}, whose values are not secret. */
export function isPublicPlaceholder(name: string): boolean {
  return PUBLIC_PLACEHOLDERS.has(name);
}

/** Replaces each placeholder once: a brace inside a value is not a placeholder. */
export function fillTemplate(template: string, values: ReadonlyMap<string, string>): string {
  return template.replace(PLACEHOLDER, (match, name: string) => values.get(name) ?? match);
}

export function isPrintable(value: string): boolean {
  return PRINTABLE.test(value);
}

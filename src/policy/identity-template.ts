/**
 * Templates of identification: text with placeholders in braces. `{mailto}` and `{tool}` are ours; what is written in
 * capitals is a variable of the environment.
 */
const PLACEHOLDER = /\{([^{}]*)\}/g;
const PUBLIC_PLACEHOLDERS: ReadonlySet<string> = new Set(["mailto", "tool"]);
const VARIABLE = /^[A-Z_][A-Z0-9_]*$/;

/** What fits into a header and a URL alike, and what no server reads as the end of a field. */
const PRINTABLE = /^[!-~](?:[ -~]*[!-~])?$/;

/** What is wrong with a template; undefined when nothing is. Quotes placeholders only: the rest may be a key. */
export function templateProblem(template: string): string | undefined {
  for (const [, name = ""] of template.matchAll(PLACEHOLDER)) {
    if (!PUBLIC_PLACEHOLDERS.has(name) && !VARIABLE.test(name)) {
      return `{${name}} is no placeholder; expected {mailto}, {tool} or a variable of the environment in capitals`;
    }
  }
  const text = template.replace(PLACEHOLDER, "x");
  if (/[{}]/.test(text)) return "a brace that belongs to no placeholder";
  return isPrintable(text) ? undefined : "expected printable ASCII without blanks at its ends";
}

/** The names of its placeholders, each once. */
export function placeholdersOf(template: string): readonly string[] {
  return [...new Set([...template.matchAll(PLACEHOLDER)].map(([, name = ""]) => name))];
}

/** True for {mailto} and {tool}, which are no secret. */
export function isPublicPlaceholder(name: string): boolean {
  return PUBLIC_PLACEHOLDERS.has(name);
}

/** Values are put in as they are: a brace in one is no placeholder. */
export function fillTemplate(template: string, values: ReadonlyMap<string, string>): string {
  return template.replace(PLACEHOLDER, (match, name: string) => values.get(name) ?? match);
}

export function isPrintable(value: string): boolean {
  return PRINTABLE.test(value);
}

import type { ConfigProblem } from "../errors.ts";
import type { Environment } from "./environment.ts";
import { IdentityField } from "./identity.ts";
import { fillTemplate, isPrintable, isPublicPlaceholder, placeholdersOf } from "./identity-template.ts";
import { ProblemList } from "./problem-list.ts";

const NOT_AN_ADDRESS = "expected an email address such as you@example.org, with an ASCII domain (value not shown)";
const NOT_A_NAME = "expected a name in printable ASCII without spaces";
const NOT_PRINTABLE =
  "the value contains control characters, leading or trailing spaces, or non-ASCII characters (value not shown)";
const ADDRESS_LENGTH_MAX = 254;
/** The expression that browsers check `<input type="email">` by. */
const ADDRESS =
  /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/;

/** Why a text is no email address; undefined if it is one. The message does not contain the text. */
export function addressProblem(text: string): string | undefined {
  return text.length <= ADDRESS_LENGTH_MAX && ADDRESS.test(text) ? undefined : NOT_AN_ADDRESS;
}

/**
 * The values of placeholders, and the problems of these values. Apart from DOCSTOKG_MAILTO, an environment variable is
 * read only if a template contains it, so that unrelated variables cannot cause problems.
 */
export class PlaceholderValues {
  readonly mailto: string | undefined;
  readonly #tool: string | undefined;
  readonly #env: Environment;
  readonly #problems = new ProblemList();
  readonly #reported = new Set<string>();

  constructor(mailto: string | undefined, tool: string, env: Environment) {
    this.#env = env;
    const isAddress = (text: string) => addressProblem(text) === undefined;
    // An empty `mailto` is a choice: DOCSTOKG_MAILTO is then not read.
    this.mailto =
      mailto === undefined
        ? this.#checked(env["DOCSTOKG_MAILTO"], "DOCSTOKG_MAILTO", isAddress, NOT_AN_ADDRESS)
        : this.#checked(mailto, "mailto", isAddress, NOT_AN_ADDRESS);
    this.#tool = this.#checked(tool, "tool", text => isPrintable(text) && !text.includes(" "), NOT_A_NAME);
  }

  get problems(): readonly ConfigProblem[] {
    return this.#problems.problems;
  }

  /** Fills the templates. A field is left out if its template is null or one of its placeholders has no value. */
  fill(templates: Readonly<Record<string, string | null>>, path: string): readonly IdentityField[] {
    return Object.entries(templates).flatMap(([name, template]) => {
      if (template === null) return [];
      const names = placeholdersOf(template);
      const values = new Map<string, string>();
      for (const placeholder of names) {
        const value = this.#valueOf(placeholder, `${path}.${name}`);
        if (value === undefined) return [];
        values.set(placeholder, value);
      }
      // A template without placeholders may be a key that was written into the file.
      const isSecret = names.length === 0 || !names.every(isPublicPlaceholder);
      const secrets = names.filter(placeholder => !isPublicPlaceholder(placeholder)).map(key => values.get(key) ?? "");
      return [new IdentityField(name, fillTemplate(template, values), isSecret, secrets, names)];
    });
  }

  #valueOf(placeholder: string, path: string): string | undefined {
    if (placeholder === "mailto") return this.mailto;
    if (placeholder === "tool") return this.#tool;
    return this.#checked(this.#env[placeholder], placeholder, isPrintable, NOT_PRINTABLE, path);
  }

  /** An empty value counts as absent. Each invalid value is reported once, and never shown. */
  #checked(
    value: unknown,
    where: string,
    isValid: (text: string) => boolean,
    message: string,
    path = "",
  ): string | undefined {
    if (value === undefined || value === "") return undefined;
    if (typeof value === "string" && isValid(value)) return value;
    if (!this.#reported.has(where)) this.#problems.add(() => ({ where, path, message }));
    this.#reported.add(where);
    return undefined;
  }
}

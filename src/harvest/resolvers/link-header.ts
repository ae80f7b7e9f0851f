/** One link of a `Link` header (RFC 8288), as signposting uses it. */
export interface Link {
  readonly target: string;
  /** The values in lower case, by names in lower case. The value of `rel` may have several relations. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** The header of a Zenodo record with a hundred files has 20 kB. */
const FIELD_CHARS_MAX = 65_536;
const LINKS_MAX = 200;

const TARGET = /[\s,]*<([^<>]*)>/y;
const PARAMETER = /\s*;\s*([\w!#$&+.^`|~-]+\*?)?(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?/y;

/** The links up to the first syntax error. Never throws. */
export function linksIn(field: string | undefined): readonly Link[] {
  const text = (field ?? "").slice(0, FIELD_CHARS_MAX);
  const links: Link[] = [];
  let at = 0;
  const next = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match !== null) at = pattern.lastIndex;
    return match;
  };
  for (let target = next(TARGET); target !== null && links.length < LINKS_MAX; target = next(TARGET)) {
    const parameters: Record<string, string> = {};
    for (let match = next(PARAMETER); match !== null; match = next(PARAMETER)) {
      const [, name, quoted, bare] = match;
      const value = quoted?.replace(/\\(.)/g, "$1") ?? bare ?? "";
      // If a parameter is repeated, the first value counts.
      if (name !== undefined && !Object.hasOwn(parameters, name.toLowerCase()))
        Object.defineProperty(parameters, name.toLowerCase(), { value: value.toLowerCase(), enumerable: true });
    }
    links.push({ target: target[1] ?? "", parameters });
  }
  return links;
}

export function hasRelation({ parameters }: Link, relation: string): boolean {
  return (parameters["rel"] ?? "").split(/\s+/).includes(relation);
}

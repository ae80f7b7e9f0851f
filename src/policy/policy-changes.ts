import { withoutCredentials } from "../core/text/passwords.ts";
import { shorten } from "../core/text/quote.ts";
import type { Assignment } from "./layer.ts";
import type { LoadedPolicy } from "./load.ts";

/** One value of the policy that a reload has changed. */
export interface PolicyChange {
  /** The file (`ratelimits`, `breakers` or `identities`) and the keys: `ratelimits.hosts.api.example.org.metadata.rates`. */
  readonly setting: string;
  /** The value before; undefined when it was not set. The values of identification fields are not shown. */
  readonly old: string | undefined;
  /** The value now; undefined when it is no longer set. */
  readonly new: string | undefined;
  /**
   * The file with its line, the variable or the flag that sets it now; the old source when it is no longer set. For
   * settings of identities: `identities`.
   */
  readonly source: string;
}

/** The values that differ between two policies, in the order of their keys. */
export function policyChanges(before: LoadedPolicy, after: LoadedPolicy): readonly PolicyChange[] {
  return [
    ...sectionChanges("ratelimits", before.ratelimits, after.ratelimits),
    ...sectionChanges("breakers", before.breakers, after.breakers),
  ];
}

/** Joins keys, which may contain dots. */
const SEPARATOR = "\n";

interface PolicyValues {
  readonly options: object;
  readonly assignments: readonly Assignment[];
}

function sectionChanges(name: string, before: PolicyValues, after: PolicyValues): readonly PolicyChange[] {
  const [old, now] = [valuesOf(before.options), valuesOf(after.options)];
  const keys = [...new Set([...old.keys(), ...now.keys()])].filter(key => old.get(key) !== now.get(key));
  if (keys.length === 0) return [];
  const [oldSources, newSources] = [sourcesOf(before.assignments), sourcesOf(after.assignments)];
  return keys.sort().map(key => ({
    setting: [name, ...key.split(SEPARATOR)].join("."),
    ...shownTexts(old.get(key), now.get(key)),
    source: (now.has(key) ? newSources : oldSources).get(key) ?? name,
  }));
}

/**
 * The complete texts of the values of an object at every depth. Lists are values. An empty map is one too:
 * `hosts: { api.example.org: {} }`.
 */
function valuesOf(options: object): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  const walk = (held: unknown, path: readonly string[]): void => {
    if (held === undefined) return;
    const isMap = typeof held === "object" && held !== null && !Array.isArray(held);
    const entries = isMap ? Object.entries(held) : [];
    if (entries.length === 0 && path.length > 0) values.set(path.join(SEPARATOR), textOf(held));
    for (const [key, inner] of entries) walk(inner, [...path, key]);
  };
  walk(options, []);
  return values;
}

/** The last assignment of a path wins. */
function sourcesOf(assignments: readonly Assignment[]): ReadonlyMap<string, string> {
  return new Map(assignments.map(({ path, where }) => [path.join(SEPARATOR), where]));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Characters that are shown before the first difference of two long texts. */
const CONTEXT_CHARS = 20;

/** Both values without passwords, shortened. Long values with the same beginning are shown where they differ. */
function shownTexts(before: string | undefined, after: string | undefined): Pick<PolicyChange, "old" | "new"> {
  const [old, now] = [before, after].map(text => (text === undefined ? undefined : withoutCredentials(text)));
  if (old === undefined || now === undefined || shorten(old) !== shorten(now))
    return { old: old && shorten(old), new: now && shorten(now) };
  let same = 0;
  while (same < old.length && old[same] === now[same]) same += 1;
  const start = same - CONTEXT_CHARS;
  const shown = (text: string) => shorten(same === old.length && same === now.length ? text : `…${text.slice(start)}`);
  return { old: shown(old), new: shown(now) };
}

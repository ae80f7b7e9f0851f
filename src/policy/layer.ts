import { canonicalHost } from "../core/text/host.ts";

/** One value at one place, and where it was said. */
export interface Assignment {
  readonly path: readonly string[];
  readonly value: unknown;
  /** `limits.yaml:12`, the name of an environment variable, a flag, or the option of a call. */
  readonly where: string;
}

/** Puts values said one after the other together, field by field: the last word counts, siblings stay. */
export function assemble(assignments: readonly Assignment[]): Record<string, unknown> {
  const root = emptyMap();
  for (const { path, value } of assignments) {
    let at = root;
    for (const key of path.slice(0, -1)) {
      const known = at[key];
      const next = isMap(known) ? known : emptyMap();
      at[key] = next;
      at = next;
    }
    const last = path.at(-1);
    if (last === undefined) continue;
    // An empty map names a place and says nothing about what is there.
    if (isMap(value)) at[last] = isMap(at[last]) ? at[last] : emptyMap();
    else at[last] = value;
  }
  return root;
}

/** Where a path was said, or failing that the first thing below it, or the last thing above it. */
export function sourceOfPath(assignments: readonly Assignment[], path: readonly string[]): string | undefined {
  const exact = assignments.findLast(
    assignment => assignment.path.length === path.length && startsWith(assignment.path, path),
  );
  const below = exact ?? assignments.find(assignment => startsWith(assignment.path, path));
  return (below ?? assignments.findLast(assignment => startsWith(path, assignment.path)))?.where;
}

/** The values of an object as assignments; lists are values, maps are places, and what is undefined was not said. */
export function assignmentsOf(value: unknown, where: string, path: readonly string[] = []): readonly Assignment[] {
  if (value === undefined) return [];
  if (!isMap(value)) return [{ path, value, where }];
  const place = path.length === 0 ? [] : [{ path, value: {}, where }];
  const isHosts = path.length === 1 && path[0] === "hosts";
  const inner = Object.entries(value).flatMap(([key, held]) =>
    assignmentsOf(held, where, [...path, isHosts ? canonicalHostIfValid(key) : key]),
  );
  return [...place, ...inner];
}

/** The canonical host; what is none is left to the schema, which says why. */
export function canonicalHostIfValid(name: string): string {
  try {
    return canonicalHost(name);
  } catch (error) {
    if (error instanceof RangeError) return name;
    throw error;
  }
}

function startsWith(path: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((key, index) => path[index] === key);
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Without a prototype, so that no key of a file can reach one. */
function emptyMap(): Record<string, unknown> {
  return Object.create(null);
}

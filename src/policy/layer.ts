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
    at[last] = isMap(value) && isMap(at[last]) ? at[last] : value;
  }
  return root;
}

/** Where a path, or failing that the nearest thing above or below it, was said. */
export function whereSaid(assignments: readonly Assignment[], path: readonly string[]): string | undefined {
  const said = assignments.findLast(assignment => startsWith(assignment.path, path));
  return (said ?? assignments.findLast(assignment => startsWith(path, assignment.path)))?.where;
}

/** The values of an object as assignments; lists are values, maps are places. */
export function assignmentsOf(value: unknown, where: string, path: readonly string[] = []): readonly Assignment[] {
  if (!isMap(value) || Object.keys(value).length === 0) return path.length === 0 ? [] : [{ path, value, where }];
  return Object.entries(value).flatMap(([key, inner]) => assignmentsOf(inner, where, [...path, key]));
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

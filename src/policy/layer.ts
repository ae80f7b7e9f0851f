import { canonicalHost } from "../core/text/host.ts";
import type { ConfigProblem } from "../errors.ts";

/** One value at one key path, and its source. */
export interface Assignment {
  /** The keys from the root to the value. */
  readonly path: readonly string[];
  readonly value: unknown;
  /** `limits.yaml:12`, the name of an environment variable, a flag, or the option of a call. */
  readonly where: string;
}

/** The values of one source (file, object, environment or flags), and what is wrong with them. */
export interface PolicyLayer {
  readonly assignments: readonly Assignment[];
  readonly problems: readonly ConfigProblem[];
}

/** Builds one object from assignments, field by field: a later value replaces an earlier one and keeps its siblings. */
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
    // An empty map creates its key and changes nothing below it.
    if (isMap(value)) at[last] = isMap(at[last]) ? at[last] : emptyMap();
    else at[last] = value;
  }
  return root;
}

/** The source of a path; otherwise of the first path below it, or of the last path above it. */
export function sourceOfPath(assignments: readonly Assignment[], path: readonly string[]): string | undefined {
  const exact = assignments.findLast(
    assignment => assignment.path.length === path.length && startsWith(assignment.path, path),
  );
  const below = exact ?? assignments.find(assignment => startsWith(assignment.path, path));
  return (below ?? assignments.findLast(assignment => startsWith(path, assignment.path)))?.where;
}

/** The values of an object as assignments. Lists are values, maps are paths, and undefined values are left out. */
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

/** True when a layer has `extends: none`: the shipped file is then ignored. */
export function standsAlone(assignments: readonly Assignment[]): boolean {
  return assignments.some(({ path, value }) => path.length === 1 && path[0] === "extends" && value === "none");
}

/** The canonical host. An invalid one is returned as it is, and the schema reports why it is invalid. */
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

/** Without a prototype, so that a key of a file such as `__proto__` cannot change one. */
function emptyMap(): Record<string, unknown> {
  return Object.create(null);
}

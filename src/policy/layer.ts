import { canonicalHost } from "../core/text/host.ts";
import type { ConfigProblem } from "../errors.ts";
import { ProblemList } from "./problem-list.ts";

/** The parts of a policy that variables and flags can change. Each is read from its own file. */
export type SectionName = "ratelimits" | "breakers";

/** One value at one key path, and its source. */
export interface Assignment {
  /** The keys from the root to the value. */
  readonly path: readonly string[];
  readonly value: unknown;
  /** `limits.yaml:12`, the name of an environment variable, a flag, or the option of a call. */
  readonly where: string;
  /** The comment after the value in its YAML file, which names the source of the number and its date. */
  readonly note?: string | undefined;
  /** True if a more specific value of a weaker layer is dropped because of this one, see `mergeLayers`. */
  readonly replacesSpecific?: boolean | undefined;
}

/** The values of one source (file, object, environment or flags), and what is wrong with them. */
export interface PolicyLayer {
  readonly assignments: readonly Assignment[];
  readonly problems: readonly ConfigProblem[];
}

/** Builds one object from assignments, field by field: a later value replaces an earlier one and keeps its siblings. */
export function assemble(assignments: readonly Assignment[]): Record<string, unknown> {
  const root = new EmptyMap();
  for (const { path, value } of assignments) {
    let at = root;
    for (let depth = 0; depth < path.length - 1; depth += 1) {
      const key = path[depth] as string;
      const known = at[key];
      if (isMap(known)) {
        at = known;
        continue;
      }
      const next = new EmptyMap();
      at[key] = next;
      at = next;
    }
    const last = path.at(-1);
    if (last === undefined) continue;
    // An empty map creates its key and changes nothing below it.
    if (isMap(value)) at[last] = isMap(at[last]) ? at[last] : new EmptyMap();
    else at[last] = value;
  }
  return root;
}

/** No policy has deeper values. */
export const MAX_DEPTH = 12;
/** The size of one file. */
export const MAX_CHARACTERS = 4_000_000;
/**
 * The values of one file or object. An alias counts each time it is used, so that a few lines cannot expand to millions
 * of values. With `MAX_DEPTH`, it also ends the walk through an object that contains itself.
 */
export const MAX_NODES = 250_000;
/** As keys they could change the prototype of an object. */
export const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/**
 * The values of an object as assignments. Lists are values, maps are paths, and undefined values are left out. Anything
 * but a map is a problem: an array, a number or a Map would set nothing.
 */
export function objectLayer(value: unknown, where: string): PolicyLayer {
  const assignments: Assignment[] = [];
  const list = new ProblemList();
  const addProblem = (path: readonly string[], message: string) =>
    list.add(() => ({ where, path: path.join("."), message }));
  let values = 0;
  /** False beyond the limits. After the first value beyond a limit, no later value is read, so there is one problem. */
  const count = (added: number, path: readonly string[], depth: number): boolean => {
    if (values > MAX_NODES) return false;
    values += added;
    if (values <= MAX_NODES && depth <= MAX_DEPTH) return true;
    const message = depth > MAX_DEPTH ? `nested more than ${MAX_DEPTH} levels deep` : `more than ${MAX_NODES} values`;
    addProblem(path, message);
    values = MAX_NODES + 1;
    return false;
  };
  /** The items are counted before they are read: a list may be longer than any that could be read. */
  const isItemWithin = (item: unknown, path: readonly string[], depth: number): boolean => {
    const inner = Array.isArray(item) ? item : isMap(item) ? Object.values(item) : [];
    return (
      inner.length === 0 ||
      (count(inner.length, path, depth) && inner.every(each => isItemWithin(each, path, depth + 1)))
    );
  };
  const walk = (held: unknown, path: readonly string[]) => {
    if (held === undefined || !count(1, path, path.length)) return;
    if (!isMap(held)) {
      if (isItemWithin(held, path, path.length + 1)) assignments.push({ path, value: held, where });
      return;
    }
    if (path.length > 0) assignments.push({ path, value: {}, where });
    const seen = new Set<string>();
    for (const [key, inner] of Object.entries(held)) {
      const canonical = canonicalKey(path, key);
      const at = [...path, canonical];
      // A host in two spellings would lose one of its entries.
      if (seen.has(canonical)) addProblem(at, `duplicate entry ${canonical}`);
      seen.add(canonical);
      walk(inner, at);
    }
  };
  if (value === undefined || isMap(value)) walk(value, []);
  else addProblem([], `expected a map of keys and values, found ${kindOf(value)}`);
  return { assignments, problems: list.problems };
}

/** One spelling of each key, so that layers can be merged: canonical hosts, and `services` for its former name. */
export function canonicalKey(path: readonly string[], key: string): string {
  if (path.length === 0) return key === "groups" ? "services" : key;
  return path.length === 1 && path[0] === "hosts" ? canonicalHostIfValid(key) : key;
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

/** True for a plain object: not for an array, a Map, a Date or another object whose content is not in its keys. */
export function isMap(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Nearly all maps have one of these prototypes. The general test takes ten times as long.
  if (prototype === EmptyMap.prototype || (prototype === Object.prototype && !(Symbol.toStringTag in value)))
    return true;
  return Object.prototype.toString.call(value) === "[object Object]";
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? `a ${value.constructor?.name ?? "special object"}` : `a ${typeof value}`;
}

/**
 * Maps without inherited keys, so that a key of a file such as `__proto__` cannot change a prototype. Made by a
 * constructor, because the engine keeps objects of `Object.create(null)` as hash tables, which take much more memory.
 */
const EmptyMap = function EmptyMap() {
  // Sets nothing.
} as unknown as new () => Record<string, unknown>;
EmptyMap.prototype = Object.create(null);

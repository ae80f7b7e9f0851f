import type { z } from "zod";
import { nearest } from "../core/text/nearest.ts";
import { shorten } from "../core/text/quote.ts";
import type { ConfigProblem } from "../errors.ts";
import { type Assignment, assemble, sourceOfPath } from "./layer.ts";

/** Layers that were found to be right, by what they are to be: the shipped files are looked at once and not for each hub. */
const validLayers = new WeakMap<readonly Assignment[], z.ZodType>();

/** What is wrong with a layer by itself: each with its place, what was found, and what may have been meant. */
export function problemsOf(
  schema: z.ZodType,
  assignments: readonly Assignment[],
  name: string,
): readonly ConfigProblem[] {
  if (validLayers.get(assignments) === schema) return [];
  const problems = findProblems(schema, assignments, name);
  if (problems.length === 0) validLayers.set(assignments, schema);
  return problems;
}

function findProblems(schema: z.ZodType, assignments: readonly Assignment[], name: string): readonly ConfigProblem[] {
  const document = assemble(assignments);
  const result = schema.safeParse(document);
  if (result.success) return [];
  const known = keysOf(schema);
  return result.error.issues.flatMap(issue => {
    const path = issue.path.map(String);
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map(key => ({
        where: sourceOfPath(assignments, [...path, key]) ?? name,
        path: [...path, key].join("."),
        message: `unknown key${suggestion(key, known)}`,
      }));
    }
    if (issue.code === "invalid_key") {
      const message = issue.issues.map(inner => inner.message).join("; ");
      return [{ where: sourceOfPath(assignments, path) ?? name, path: path.join("."), message }];
    }
    const found = isSecret(path) ? "(not shown)" : valueAt(document, path);
    const message = issue.code === "custom" ? issue.message : `${plain(issue.message)}, found ${show(found)}`;
    return [{ where: sourceOfPath(assignments, path) ?? name, path: path.join("."), message }];
  });
}

function suggestion(key: string, known: ReadonlySet<string>): string {
  if (known.has(key)) return ": it does not belong here";
  const meant = nearest(key, known);
  return meant === undefined ? "" : `; did you mean ${meant}?`;
}

/** Every key that stands anywhere in the schema: enough to suggest from. */
function keysOf(schema: z.ZodType): ReadonlySet<string> {
  const keys = new Set<string>();
  const walk = (value: unknown, seen: Set<unknown>): void => {
    if (typeof value !== "object" || value === null || seen.has(value)) return;
    seen.add(value);
    const {
      shape,
      innerType,
      valueType,
      in: input,
    } = (value as { _zod?: { def: Record<string, unknown> } })._zod?.def ?? {};
    for (const inner of [innerType, valueType, input]) walk(inner, seen);
    if (typeof shape !== "object" || shape === null) return;
    for (const [key, inner] of Object.entries(shape)) {
      keys.add(key);
      walk(inner, seen);
    }
  };
  walk(schema, new Set());
  return keys;
}

function valueAt(document: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, key) => (typeof at === "object" && at !== null ? (at as Record<string, unknown>)[key] : undefined),
    document,
  );
}

function plain(message: string): string {
  return message
    .replace(/^Invalid input: |^Invalid option: /, "")
    .replace(/^Too (?:small|big): expected \w+ to (?:be|have) /, "expected ")
    .replace(/, received .*$/, "")
    .replace(/^expected (?:record|object)$/, "expected a map")
    .replaceAll('"|"', '", "');
}

/** Where backends are named there may be passwords, even in the wrong place. */
function isSecret(path: readonly string[]): boolean {
  return path.includes("backend") || path.includes("cooldown_store");
}

function show(value: unknown): string {
  const text = (JSON.stringify(value) ?? "nothing").replace(/\/\/[^/@\s"]*@/g, "//…@");
  return shorten(text);
}

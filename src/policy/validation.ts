import type { z } from "zod";
import { nearest } from "../core/text/nearest.ts";
import { withoutCredentials } from "../core/text/passwords.ts";
import { shorten } from "../core/text/quote.ts";
import type { ConfigProblem } from "../errors.ts";
import { type Assignment, assemble } from "./layer.ts";
import { valueAt } from "./precedence.ts";
import { ProblemList } from "./problem-list.ts";
import { SourceIndex } from "./source-index.ts";

/** Layers without problems, by their schema: the shipped files are checked once, and not for each hub. */
const validLayers = new WeakMap<readonly Assignment[], z.ZodType>();

export interface ValidationOptions {
  /** Whether messages quote the value that was found. False for files that may contain secrets. @default true */
  readonly quotesValues?: boolean | undefined;
}

/** The problems of one layer by itself: each with its source, the value that was found, and a suggestion. */
export function problemsOf(
  schema: z.ZodType,
  assignments: readonly Assignment[],
  name: string,
  options: ValidationOptions = {},
): readonly ConfigProblem[] {
  if (validLayers.get(assignments) === schema) return [];
  const problems = findProblems(schema, assignments, name, options);
  if (problems.length === 0) validLayers.set(assignments, schema);
  return problems;
}

function findProblems(
  schema: z.ZodType,
  assignments: readonly Assignment[],
  name: string,
  { quotesValues = true }: ValidationOptions,
): readonly ConfigProblem[] {
  const document = assemble(assignments);
  const result = schema.safeParse(document);
  if (result.success) return [];
  const known = keysOf(schema);
  const index = new SourceIndex(assignments);
  const list = new ProblemList(name);
  const add = (path: readonly string[], message: () => string) =>
    list.add(() => ({ where: index.whereOf(path) ?? name, path: path.join("."), message: message() }));
  for (const issue of result.error.issues) {
    const path = issue.path.map(String);
    if (issue.code === "unrecognized_keys") {
      for (const key of issue.keys) add([...path, key], () => unknownKeyMessage(key, known));
    } else if (issue.code === "invalid_key") {
      add(path, () => issue.issues.map(inner => inner.message).join("; "));
    } else {
      add(path, () => {
        const quote = isStoreAddress(path)
          ? " (value not shown, it may contain a password)"
          : `, found ${quoted(valueAt(document, path))}`;
        return issue.code === "custom" ? issue.message : plainMessage(issue.message) + (quotesValues ? quote : "");
      });
    }
  }
  return list.problems;
}

function unknownKeyMessage(key: string, known: ReadonlySet<string>): string {
  if (known.has(key)) return "this key is not allowed at this place";
  const suggested = nearest(key, known);
  return suggested === undefined ? "unknown key" : `unknown key; did you mean ${suggested}?`;
}

/** Every key of the schema at any depth, for suggestions. */
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

/** Without the parts of zod's messages that repeat what the rest of the problem says. */
function plainMessage(message: string): string {
  return message
    .replace(/^Invalid input: |^Invalid option: /, "")
    .replace(/^Too (?:small|big): expected \w+ to (?:be|have) /, "expected ")
    .replace(/, received .*$/, "")
    .replace(/^expected (?:record|object)$/, "expected a map")
    .replaceAll('"|"', '", "');
}

/** A store's address may contain a password, and a user may write it under the wrong key of the store. */
function isStoreAddress(path: readonly string[]): boolean {
  return path.includes("backend") || path.includes("cooldown_store");
}

function quoted(value: unknown): string {
  return shorten(withoutCredentials(JSON.stringify(value) ?? "no value"));
}

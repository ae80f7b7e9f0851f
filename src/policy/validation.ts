import { nearest } from "../core/text/nearest.ts";
import { withoutCredentials } from "../core/text/passwords.ts";
import { shorten } from "../core/text/quote.ts";
import type { ConfigProblem } from "../errors.ts";
import { type Assignment, assemble } from "./layer.ts";
import { valueAt } from "./precedence.ts";
import { ProblemList } from "./problem-list.ts";
import type { AnySchema } from "./schema.ts";
import { checkBySchema, type SchemaIssue } from "./schema-check.ts";
import { SourceIndex } from "./source-index.ts";

export interface ValidationOptions {
  /** Whether messages quote the value that was found. False for files that may contain secrets. @default true */
  readonly quotesValues?: boolean | undefined;
}

/** The problems of one layer by itself: each with its source, the value that was found, and a suggestion. */
export function problemsOf(
  schema: AnySchema,
  assignments: readonly Assignment[],
  name: string,
  { quotesValues = true }: ValidationOptions = {},
): readonly ConfigProblem[] {
  const document = assemble(assignments);
  const { issues } = checkBySchema(schema, document);
  if (issues.length === 0) return [];
  const known = keysOf(schema);
  const index = new SourceIndex(assignments);
  const list = new ProblemList();
  const messageOf = ({ kind, path, message }: SchemaIssue) => {
    if (kind === "unknown key") return unknownKeyMessage(path.at(-1) ?? "", known, keysAt(schema, path.slice(0, -1)));
    if (kind !== "value" || !quotesValues) return message;
    const value = valueAt(document, path);
    return isStoreAddress(path) && typeof value !== "number"
      ? `${message} (value not shown, it may contain a password)`
      : `${message}, found ${quoted(value)}`;
  };
  for (const issue of issues) {
    const { path } = issue;
    list.add(() => ({ where: index.whereOf(path) ?? name, path: path.join("."), message: messageOf(issue) }));
  }
  return list.problems;
}

/** @param allowed the keys of the place itself */
function unknownKeyMessage(key: string, known: ReadonlySet<string>, allowed: readonly string[]): string {
  const choice = allowed.length === 0 ? "" : `; the keys here are ${allowed.join(", ")}`;
  if (known.has(key)) return `this key is not allowed at this place${choice}`;
  const suggested = nearest(key, known);
  return suggested === undefined ? `unknown key${choice}` : `unknown key; did you mean ${suggested}?`;
}

/** The keys of the object at a path; none if the schema has no object with fixed keys there. */
function keysAt(schema: AnySchema, path: readonly string[]): readonly string[] {
  const { node } = schema;
  if ("inner" in node) return keysAt(node.inner, path);
  if (node.kind === "union")
    return node.options.map(option => keysAt(option, path)).find(keys => keys.length > 0) ?? [];
  const [key, ...rest] = path;
  if (node.kind === "map") return key === undefined ? [] : keysAt(node.values, rest);
  if (node.kind === "list") return key === undefined ? [] : keysAt(node.items, rest);
  if (node.kind !== "object") return [];
  if (key === undefined) return node.fields.map(([name]) => name);
  const inner = Object.hasOwn(node.shape, key) ? node.shape[key] : undefined;
  return inner === undefined ? [] : keysAt(inner, rest);
}

/** Every key of the schema at any depth, for suggestions. */
function keysOf(schema: AnySchema, keys = new Set<string>()): Set<string> {
  const { node } = schema;
  if ("inner" in node) keysOf(node.inner, keys);
  else if (node.kind === "map") keysOf(node.values, keys);
  else if (node.kind === "list") keysOf(node.items, keys);
  else if (node.kind === "union") for (const option of node.options) keysOf(option, keys);
  else if (node.kind === "object") {
    for (const [key, inner] of Object.entries(node.shape)) {
      keys.add(key);
      keysOf(inner, keys);
    }
  }
  return keys;
}

/** A store's address may contain a password, and a user may write it under the wrong key of the store. */
function isStoreAddress(path: readonly string[]): boolean {
  return path.includes("backend") || path.includes("cooldown_store");
}

function quoted(value: unknown): string {
  if (value === undefined) return "no value";
  if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}`;
  if (typeof value === "bigint") return bigintText(value);
  // JSON has neither infinity nor bigint.
  const text =
    typeof value === "number"
      ? String(value)
      : JSON.stringify(value, (_, inner) => (typeof inner === "bigint" ? bigintText(inner) : inner));
  return shorten(withoutCredentials(text));
}

function bigintText(value: bigint): string {
  return `${value}n`;
}

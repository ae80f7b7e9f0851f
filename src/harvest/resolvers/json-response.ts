import { z } from "zod";
import { type ResolverFailure, unreadable } from "./finding.ts";
import type { ResolverResponse } from "./resolver.ts";

/** The longest recorded answer has 40 kB; a hundred times that is no answer about one work. */
export const RESPONSE_CHARS_MAX = 4 * 1024 * 1024;

/** A field that candidates are made of: absent, null, or a text. */
export const text = z.string().nullish();
/** A field that only adorns a candidate: whatever else a service puts there, the copy is worth more than its label. */
export const lenientText = z.string().nullish().catch(undefined);
export const lenientYear = z.union([z.number(), z.string()]).nullish().catch(undefined);

/** The beginning of a list that an answer cannot do without: nobody reads the ten-thousandth place. */
export function listOf<Item extends z.ZodType>(item: Item, atMost = 100) {
  return z.preprocess(value => (Array.isArray(value) ? value.slice(0, atMost) : value), z.array(item));
}

/** The beginning of a list that may as well be absent, or null. */
export function optionalListOf<Item extends z.ZodType>(item: Item, atMost = 100) {
  return listOf(item, atMost)
    .nullish()
    .transform(items => items ?? []);
}

/** The part of an answer that we understand, or the trouble with it: unknown fields are nobody's business. */
export function readJson<Schema extends z.ZodType>(
  response: ResolverResponse,
  schema: Schema,
): { readonly data: z.infer<Schema> } | { readonly failure: ResolverFailure } {
  if (response.body.length > RESPONSE_CHARS_MAX)
    return { failure: unreadable(response, `${response.body.length} characters, more than we read`) };
  let value: unknown;
  try {
    value = JSON.parse(response.body.replace(/^\ufeff/, ""));
  } catch {
    return {
      failure: unreadable(response, `something that is not JSON: ${JSON.stringify(response.body.slice(0, 60))}`),
    };
  }
  const read = schema.safeParse(value);
  if (read.success) return { data: read.data };
  const { path, message } = deepest(read.error.issues);
  return {
    failure: unreadable(response, `an unknown shape: ${path.join(".") || "the whole"}: ${message}`.slice(0, 300)),
  };
}

interface SchemaIssue {
  readonly path: readonly string[];
  readonly message: string;
}

/** Of several shapes that an answer may have, the one that fits furthest is the one it was meant to have. */
function deepest(issues: readonly z.core.$ZodIssue[]): SchemaIssue {
  const complaints = issues.slice(0, 10).map((issue): SchemaIssue => {
    const path = issue.path.map(String);
    if (issue.code !== "invalid_union" || issue.errors.length === 0) return { path, message: issue.message };
    const inner = issue.errors.map(deepest).reduce(deeper);
    return { path: [...path, ...inner.path], message: inner.message };
  });
  return complaints.reduce(deeper, { path: [], message: "unexpected" });
}

function deeper(one: SchemaIssue, other: SchemaIssue): SchemaIssue {
  return other.path.length > one.path.length || one.message === "unexpected" ? other : one;
}

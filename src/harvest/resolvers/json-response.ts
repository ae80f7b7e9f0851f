import { z } from "zod";
import { type ResolverFailure, unreadable } from "./finding.ts";
import type { ResolverResponse } from "./resolver.ts";

/** A hundred times the longest recorded response (40 kB). */
export const RESPONSE_CHARS_MAX = 4 * 1024 * 1024;

/** A field that candidates need: absent, null, or a string. Any other type makes the response unreadable. */
export const optionalText = z.string().nullish();
/** A field that only describes a candidate: an unexpected type is ignored, so that the candidate is not lost. */
export const lenientText = z.string().nullish().catch(undefined);
export const lenientYear = z.union([z.number(), z.string()]).nullish().catch(undefined);

/** A required list, cut after `atMost` items. */
export function listOf<Item extends z.ZodType>(item: Item, atMost = 100) {
  return z.preprocess(value => (Array.isArray(value) ? value.slice(0, atMost) : value), z.array(item));
}

/** A list that may be absent or null, cut after `atMost` items. */
export function optionalListOf<Item extends z.ZodType>(item: Item, atMost = 100) {
  return listOf(item, atMost)
    .nullish()
    .transform(items => items ?? []);
}

/** Parses the known fields of a response; unknown fields are ignored. */
export function readJson<Schema extends z.ZodType>(
  response: ResolverResponse,
  schema: Schema,
  maxChars = RESPONSE_CHARS_MAX,
): { readonly data: z.infer<Schema> } | { readonly failure: ResolverFailure } {
  if (response.body.length > maxChars)
    return { failure: unreadable(response, `${response.body.length} characters, limit is ${maxChars}`) };
  let value: unknown;
  try {
    value = JSON.parse(response.body.replace(/^\ufeff/, ""));
  } catch {
    return {
      failure: unreadable(response, `invalid JSON: ${JSON.stringify(response.body.slice(0, 60))}`),
    };
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return { data: parsed.data };
  const { path, message } = deepest(parsed.error.issues);
  return {
    failure: unreadable(response, `an unexpected format at ${path.join(".") || "(root)"}: ${message}`.slice(0, 300)),
  };
}

interface ResponseIssue {
  readonly path: readonly string[];
  readonly message: string;
}

/** The issue at the deepest path: among several possible formats, it belongs to the one that fits best. */
function deepest(issues: readonly z.core.$ZodIssue[]): ResponseIssue {
  const found = issues.slice(0, 10).map((issue): ResponseIssue => {
    const path = issue.path.map(String);
    if (issue.code !== "invalid_union" || issue.errors.length === 0) return { path, message: issue.message };
    const inner = issue.errors.map(deepest).reduce(deeper);
    return { path: [...path, ...inner.path], message: inner.message };
  });
  return found.reduce(deeper, { path: [], message: "unexpected" });
}

function deeper(one: ResponseIssue, other: ResponseIssue): ResponseIssue {
  return other.path.length > one.path.length || one.message === "unexpected" ? other : one;
}

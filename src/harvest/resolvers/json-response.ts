import { z } from "zod";
import { type Trouble, unreadable } from "./finding.ts";
import type { ResolverAnswer } from "./resolver.ts";

/** The longest recorded answer has 40 kB; a hundred times that is no answer about one work. */
export const ANSWER_CHARS_MAX = 4 * 1024 * 1024;

/** A field that candidates are made of: absent, null, or a text. */
export const text = z.string().nullish();
/** A field that only adorns a candidate: whatever else a service puts there, the copy is worth more than its label. */
export const aside = z.string().nullish().catch(undefined);
export const yearAside = z.union([z.number(), z.string()]).nullish().catch(undefined);

/** The beginning of a list that an answer cannot do without: nobody reads the ten-thousandth place. */
export function listOf<Item extends z.ZodType>(item: Item, atMost = 100) {
  return z.preprocess(value => (Array.isArray(value) ? value.slice(0, atMost) : value), z.array(item));
}

/** The beginning of a list that may as well be absent, or null. */
export function anyOf<Item extends z.ZodType>(item: Item, atMost = 100) {
  return listOf(item, atMost)
    .nullish()
    .transform(items => items ?? []);
}

/** The part of an answer that we understand, or the trouble with it: unknown fields are nobody's business. */
export function readJson<Schema extends z.ZodType>(
  answer: ResolverAnswer,
  schema: Schema,
): { readonly data: z.infer<Schema> } | { readonly trouble: Trouble } {
  if (answer.body.length > ANSWER_CHARS_MAX)
    return { trouble: unreadable(answer, `${answer.body.length} characters, more than we read`) };
  let value: unknown;
  try {
    value = JSON.parse(answer.body.replace(/^\ufeff/, ""));
  } catch {
    return { trouble: unreadable(answer, `something that is not JSON: ${JSON.stringify(answer.body.slice(0, 60))}`) };
  }
  const read = schema.safeParse(value);
  if (read.success) return { data: read.data };
  const { path, message } = deepest(read.error.issues);
  return {
    trouble: unreadable(answer, `an unknown shape: ${path.join(".") || "the whole"}: ${message}`.slice(0, 300)),
  };
}

interface Complaint {
  readonly path: readonly string[];
  readonly message: string;
}

/** Of several shapes that an answer may have, the one that fits furthest is the one it was meant to have. */
function deepest(issues: readonly z.core.$ZodIssue[]): Complaint {
  const complaints = issues.slice(0, 10).map((issue): Complaint => {
    const path = issue.path.map(String);
    if (issue.code !== "invalid_union" || issue.errors.length === 0) return { path, message: issue.message };
    const inner = issue.errors.map(deepest).reduce(deeper);
    return { path: [...path, ...inner.path], message: inner.message };
  });
  return complaints.reduce(deeper, { path: [], message: "unexpected" });
}

function deeper(one: Complaint, other: Complaint): Complaint {
  return other.path.length > one.path.length || one.message === "unexpected" ? other : one;
}

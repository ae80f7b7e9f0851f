import { z } from "zod";
import type { ResolverAnswer } from "../resolver.ts";
import { type Trouble, unreadable } from "./finding.ts";

/** The longest recorded answer has 40 kB; a hundred times that is no answer about one work. */
export const ANSWER_CHARS_MAX = 4 * 1024 * 1024;

/** A field that candidates are made of: absent, null, or a text. */
export const text = z.string().nullish();
/** A field that only adorns a candidate: whatever else a service puts there, the copy is worth more than its label. */
export const aside = z.string().nullish().catch(undefined);
export const yearAside = z.union([z.number(), z.string()]).nullish().catch(undefined);

/** The beginning of a list: nobody reads the ten-thousandth place. */
export function listOf<Item extends z.ZodType>(item: Item, atMost = 100) {
  return z.preprocess(
    value => (Array.isArray(value) ? value.slice(0, atMost) : value),
    z
      .array(item)
      .nullish()
      .transform(items => items ?? []),
  );
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
  const [issue] = read.error.issues;
  const path = issue?.path.map(String).join(".") || "the whole";
  return { trouble: unreadable(answer, `an unknown shape: ${path}: ${issue?.message ?? "unexpected"}`.slice(0, 300)) };
}

/** Parts that the schemas of all policy files share. */
import { canonicalHost } from "../core/text/host.ts";
import { ConfigError } from "../errors.ts";
import { assemble, objectLayer } from "./layer.ts";
import * as s from "./schema.ts";
import { checkBySchema } from "./schema-check.ts";
import { problemsOf } from "./validation.ts";

export const hostNameSchema = s.string().convert(canonicalHost);

export const versionSchema = s.oneOf(1).optional().describe("Version of the file format: 1. Default: 1");

export const extendsSchema = s
  .oneOf("default", "none")
  .optional()
  .describe(
    "default: fields of this file replace those of the shipped file, and its other fields stay; none: the shipped file is ignored. Default: default",
  );

/** Parses options by a schema. Throws a ConfigError that lists every problem. */
export function parseOptions<Schema extends s.AnySchema>(
  schema: Schema,
  options: unknown,
  where: string,
): s.OutputOf<Schema> {
  const layer = objectLayer(options, where);
  const { value, issues } = checkBySchema(schema, assemble(layer.assignments));
  const problems = [...layer.problems, ...(issues.length === 0 ? [] : problemsOf(schema, layer.assignments, where))];
  if (problems.length > 0) throw new ConfigError(problems);
  return value;
}

/** As `parseOptions`, for options that were assembled from layers that are valid by themselves. */
export function parseMerged<Schema extends s.AnySchema>(
  schema: Schema,
  options: unknown,
  where: string,
): s.OutputOf<Schema> {
  const { value, issues } = checkBySchema(schema, options);
  return issues.length === 0 ? value : parseOptions(schema, options, where);
}

/**
 * `true` if both types have the same keys and values at every depth, otherwise `never`. `true satisfies Exact<A, B>`
 * checks at compile time that a hand-written interface and the input of a schema agree. Assignability alone would accept
 * an optional key that only one of them has.
 */
export type Exact<A, B> = [ComparedShape<A>] extends [ComparedShape<B>]
  ? [ComparedShape<B>] extends [ComparedShape<A>]
    ? true
    : never
  : never;

type ComparedShape<Type> = Type extends readonly (infer Item)[]
  ? { readonly items: ComparedShape<Item> }
  : Type extends object
    ? { [Key in keyof Type]-?: ComparedShape<Exclude<Type[Key], undefined>> }
    : Type;

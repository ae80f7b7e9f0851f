/** Parts that the schemas of all policy files share. */
import { z } from "zod";
import { canonicalHost } from "../core/text/host.ts";
import { ConfigError, type ConfigProblem } from "../errors.ts";
import { assemble, canonicalHostIfValid, objectLayer } from "./layer.ts";
import { problemsOf } from "./validation.ts";

/** Runs a parser of the core, and reports its RangeError as a problem of this value. */
export function parsedBy<Input, Output>(parse: (input: Input) => Output) {
  return (input: Input, context: z.RefinementCtx): Output => {
    try {
      return parse(input);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      context.addIssue({ code: "custom", message: error.message });
      return z.NEVER;
    }
  };
}

export const hostNameSchema = z.string().transform(parsedBy(canonicalHost));

export const versionSchema = z.literal(1).optional().describe("Version of the file format: 1. Default: 1");

export const extendsSchema = z
  .enum(["default", "none"])
  .optional()
  .describe(
    "default: the file changes single fields of the shipped file; none: the shipped file is ignored. Default: default",
  );

/** Parses options by a schema. Throws a ConfigError that lists every problem. */
export function parseOptions<Schema extends z.ZodType>(
  schema: Schema,
  options: unknown,
  where: string,
): z.output<Schema> {
  const layer = objectLayer(options, where);
  const problems = [
    ...layer.problems,
    ...problemsOf(schema, layer.assignments, where),
    ...duplicateHosts(options, where),
  ];
  if (problems.length > 0) throw new ConfigError(problems);
  return schema.parse(assemble(layer.assignments));
}

/** As `parseOptions`, for options that were assembled from layers that are valid by themselves. */
export function parseMerged<Schema extends z.ZodType>(
  schema: Schema,
  options: unknown,
  where: string,
): z.output<Schema> {
  const result = schema.safeParse(options);
  return result.success ? result.data : parseOptions(schema, options, where);
}

/** A host in two spellings would lose one of its entries. */
function duplicateHosts(options: unknown, where: string): readonly ConfigProblem[] {
  const { hosts } = (options ?? {}) as { readonly hosts?: unknown };
  if (typeof hosts !== "object" || hosts === null) return [];
  const names = Object.keys(hosts).map(canonicalHostIfValid);
  const seen = new Set<string>();
  const duplicates = names.filter(name => seen.size === seen.add(name).size);
  return duplicates.map(name => ({ where, path: `hosts.${name}`, message: `duplicate entry ${name}` }));
}

/**
 * `true` if both types have the same keys and values at every depth, otherwise `never`. `true satisfies Exact<A, B>`
 * checks at compile time that a hand-written interface and the input of a schema agree. Assignability alone would accept
 * an optional key that only one of them has.
 */
export type Exact<A, B> = [Shape<A>] extends [Shape<B>] ? ([Shape<B>] extends [Shape<A>] ? true : never) : never;

type Shape<Type> = Type extends readonly (infer Item)[]
  ? { readonly items: Shape<Item> }
  : Type extends object
    ? { [Key in keyof Type]-?: Shape<Exclude<Type[Key], undefined>> }
    : Type;

/** The shape of `sources.yaml`; keys as users write them. */
import * as s from "../policy/schema.ts";
import { TARGET_FORMATS } from "./format.ts";

/** A rate, or several; null for no limit. */
export const rateSchema = s
  .union([s.string(), s.list(s.string())], "expected a rate such as 8/second, a list of rates, or null for no limit")
  .nullable();

/** Rates by service, as a map or as one text. */
export const serviceRatesSchema = s.union(
  [s.string(), s.map(s.string().min(1), rateSchema)],
  "expected a rate for each service, such as { ols: 4/second }, or the text ols:4/second;bioportal:2/second",
);

/**
 * Why the id of an ontology is invalid; undefined if it is valid. An id becomes part of paths, so it has no separators.
 * It has lower case, because some file systems ignore case.
 */
export function idProblem(id: string): string | undefined {
  if (/^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$/.test(id)) return undefined;
  return (
    `invalid id ${JSON.stringify(id.slice(0, 80))}; use 1 to 64 lower-case letters, digits, ".", "_" and "-", ` +
    "and begin and end with a letter or digit"
  );
}

/** The keys of `defaults` and of each source. */
const sharedKeys = {
  resolver: s.string().min(1).optional(),
  target_formats: s.list(s.oneOf(...TARGET_FORMATS)).optional(),
  mirrors: s.list(s.string().min(1)).max(10).optional(),
  imports: s.boolean().optional(),
};

export const sourcesSchema = s.object({
  version: s.oneOf(1).optional(),
  store: s.string().min(1).optional(),
  lockfile: s.string().min(1).optional(),
  check: s.oneOf("full", "end", "none").optional(),
  max_file_mb: s.integer().min(1).max(1_000_000).optional(),
  parallel: s.integer().min(1).max(16).optional(),
  allow_private: s.boolean().optional(),
  ratelimit: s
    .object({
      default: rateSchema.optional(),
      per_service: serviceRatesSchema.optional(),
      shared_dir: s.string().min(1).optional(),
    })
    .default({}),
  defaults: s.object(sharedKeys).default({}),
  sources: s
    .map(
      s.string().check(idProblem),
      s.object({
        ...sharedKeys,
        version: s.string().min(1).max(64).optional(),
        sha256: s
          .string()
          .regex(/^[0-9a-f]{64}$/, "expected 64 hexadecimal digits in lower case")
          .optional(),
        extras: s
          .map(
            s.string().min(1),
            s.union([s.string(), s.number(), s.boolean()], "expected a text, a number, true or false"),
          )
          .optional(),
      }),
    )
    .default({}),
});

export type SourcesFile = s.OutputOf<typeof sourcesSchema>;

/** The shape of `sources.yaml`; keys as users write them. */
import { z } from "zod";
import { TARGET_FORMATS } from "./format.ts";

const rate = z
  .union([z.string(), z.array(z.string())], { error: "expected a rate such as 8/second, or null" })
  .nullable();

/** An id becomes part of paths: no separators, and lower case because some file systems ignore case. */
export const ontologyId = z.string().regex(/^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$/, {
  error: issue =>
    `invalid id ${JSON.stringify(String(issue.input).slice(0, 80))}; use lower-case letters, digits, ".", "_" and "-"`,
});
const wanted = {
  resolver: z.string().min(1).optional(),
  target_formats: z.array(z.enum(TARGET_FORMATS)).optional(),
  mirrors: z.array(z.string().min(1)).max(10).optional(),
  imports: z.boolean().optional(),
};

export const sourcesSchema = z.strictObject({
  version: z.literal(1).optional(),
  store: z.string().min(1).optional(),
  lockfile: z.string().min(1).optional(),
  check: z.enum(["full", "end", "none"]).optional(),
  max_file_mb: z.int().min(1).max(1_000_000).optional(),
  parallel: z.int().min(1).max(16).optional(),
  allow_private: z.boolean().optional(),
  ratelimit: z
    .strictObject({
      default: rate.optional(),
      per_service: z.union([z.string(), z.record(z.string().min(1), rate)]).optional(),
      shared_dir: z.string().min(1).optional(),
    })
    .prefault({}),
  defaults: z.strictObject(wanted).prefault({}),
  sources: z
    .record(
      ontologyId,
      z.strictObject({
        ...wanted,
        version: z.string().min(1).max(64).optional(),
        sha256: z
          .string()
          .regex(/^[0-9a-f]{64}$/, { error: "expected 64 hexadecimal digits in lower case" })
          .optional(),
        extras: z.record(z.string().min(1), z.union([z.string(), z.number(), z.boolean()])).optional(),
      }),
    )
    .prefault({}),
});

export type SourcesFile = z.output<typeof sourcesSchema>;

import { basename } from "node:path";
import { breakersSchema } from "./breaker-schema.ts";
import { identitiesSchema } from "./identity-schema.ts";
import { type Assignment, assemble } from "./layer.ts";
import { ratelimitsSchema } from "./ratelimit-schema.ts";
import type { AnySchema } from "./schema.ts";
import { checkBySchema } from "./schema-check.ts";

export type PolicyFileKind = "ratelimits" | "breakers" | "identities";

const SCHEMAS: readonly { readonly kind: PolicyFileKind; readonly name: RegExp; readonly schema: AnySchema }[] = [
  { kind: "breakers", name: /breaker/i, schema: breakersSchema },
  { kind: "ratelimits", name: /ratelimit/i, schema: ratelimitsSchema },
  { kind: "identities", name: /identit/i, schema: identitiesSchema },
];

/**
 * The kind of a policy file: by its name, or else the kind whose schema knows most of its values. If several kinds fit
 * equally, the file has the limits.
 */
export function fileKind(file: string, assignments: readonly Assignment[]): PolicyFileKind {
  const named = SCHEMAS.find(({ name }) => name.test(basename(file)));
  if (named !== undefined) return named.kind;
  const judged = SCHEMAS.map(({ kind, schema }) => ({ kind, ...issuesOf(schema, assignments) }));
  const [best] = judged.toSorted(
    (a, b) =>
      a.unknown - b.unknown || a.others - b.others || Number(b.kind === "ratelimits") - Number(a.kind === "ratelimits"),
  );
  return best?.kind ?? "ratelimits";
}

/** How many values are at or below a key that the schema does not know, and how many other issues there are. */
function issuesOf(schema: AnySchema, assignments: readonly Assignment[]): { unknown: number; others: number } {
  const { issues } = checkBySchema(schema, assemble(assignments));
  const unknownKeys = new Set(issues.filter(({ kind }) => kind === "unknown key").map(({ path }) => path.join("\0")));
  const isUnknown = ({ path }: Assignment) =>
    path.some((_, depth) => unknownKeys.has(path.slice(0, depth + 1).join("\0")));
  const unknown = unknownKeys.size === 0 ? 0 : assignments.filter(isUnknown).length;
  return { unknown, others: issues.length - unknownKeys.size };
}

import { z } from "zod";

/** What is known of one stored version: `manifest.json` beside its file. Never a secret, never a path of this machine. */
const manifestSchema = z.object({
  manifest_version: z.literal(1),
  id: z.string(),
  /** What people call it; the folder is named after it. */
  version: z.string(),
  /** As the file says it. */
  version_in_file: z.string().nullable(),
  resolver: z.string(),
  service: z.string(),
  url: z.string(),
  /** Where redirects led in the end, without its query: that may be signed. */
  final_url: z.string(),
  format: z.enum(["rdf-xml", "owl-xml", "obo", "obographs", "turtle", "functional", "json-ld"]),
  /** Within the folder. */
  file: z.string().regex(/^[\w.+-]+$/),
  bytes: z.number().int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** As it came, where it came packed. */
  received: z.object({ packing: z.string(), bytes: z.number(), sha256: z.string() }).nullable(),
  etag: z.string().nullable(),
  last_modified: z.string().nullable(),
  licence: z.string().nullable(),
  checks: z.object({ depth: z.string(), statements: z.number().optional(), of: z.string().optional() }),
  fetched_at: z.string(),
  /** When its server last said that it has not changed. */
  checked_at: z.string(),
});

export type OntologyManifest = z.output<typeof manifestSchema>;

/** Undefined for what is none. */
export function parseManifest(text: string): OntologyManifest | undefined {
  try {
    return manifestSchema.safeParse(JSON.parse(text)).data;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

export function formatManifest(manifest: OntologyManifest): string {
  return `${JSON.stringify(manifest, undefined, 2)}\n`;
}

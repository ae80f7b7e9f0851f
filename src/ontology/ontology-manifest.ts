import { z } from "zod";
import { FILE_FORMATS, type OntologyFileFormat } from "./format.ts";
import type { OntologyFacts } from "./parsing/ontology-facts.ts";

/**
 * `manifest.json`, which lies beside each stored file. It contains no secret and no path of this machine. Times are ISO
 * 8601 in UTC.
 */
export interface OntologyManifest {
  /** The version of this format. */
  readonly manifest_version: 1;
  /** The id in `sources.yaml`. */
  readonly id: string;
  /**
   * The version in short form, after which the folder is named: the one in the file, else the one that the service
   * announced, else `sha256-` and 12 digits of the hash.
   */
  readonly version: string;
  /** The version as the file states it, often an IRI; null if the file states none. */
  readonly version_in_file: string | null;
  /** The resolver that found the URL. */
  readonly resolver: string;
  /** The service whose rate limits applied. */
  readonly service: string;
  /** The URL that the resolver returned. */
  readonly url: string;
  /** The URL after all redirects, without its query, which may contain a signature. */
  readonly final_url: string;
  /** The address of this version alone, which later versions do not replace; null if none is known. */
  readonly versioned_url: string | null;
  /** The version that the service announced, in short form; null if it announced none. */
  readonly announced_version: string | null;
  /** The format that the bytes of the file show. */
  readonly format: OntologyFileFormat;
  /** The name of the file in its folder. */
  readonly file: string;
  /** Length of the stored file, after unpacking. */
  readonly bytes: number;
  /** SHA-256 of the stored file in lower-case hexadecimal, after unpacking. */
  readonly sha256: string;
  /** The file as it was received, if it was compressed; else null. */
  readonly received: {
    /** `gz`, `zip` or another packing that `ontofetch` unpacks. */
    readonly packing: string;
    /** Length in bytes. */
    readonly bytes: number;
    /** SHA-256 in lower-case hexadecimal. */
    readonly sha256: string;
  } | null;
  /** The `ETag` of the response; null if it had none. */
  readonly etag: string | null;
  /** The `Last-Modified` of the response; null if it had none. */
  readonly last_modified: string | null;
  /** The licence that the service states, else the one in the file; null if neither states one. */
  readonly licence: string | null;
  /** How the file was checked. */
  readonly checks: {
    /** `full`: the whole file. `end`: its beginning and end. `none`: its beginning. */
    readonly depth: string;
    /** How many statements a parser has found. */
    readonly statements?: number | undefined;
    /** What `statements` counts: triples, stanzas, axioms, nodes or concepts. */
    readonly of?: string | undefined;
    /** Why there are no statements and no facts, although the file is valid. */
    readonly note?: string | undefined;
  };
  /** What the file says about itself, and what it contains; null unless the whole file was parsed. */
  readonly facts: OntologyFacts | null;
  /** When the file was downloaded. */
  readonly fetched_at: string;
  /** When the file was downloaded, or when the server last answered that it has not changed. */
  readonly checked_at: string;
}

const factsSchema: z.ZodType<OntologyFacts> = z.object({
  ontology_iri: z.string().nullable(),
  version_iri: z.string().nullable(),
  version_info: z.string().nullable(),
  date: z.string().nullable(),
  title: z.string().nullable(),
  licence: z.string().nullable(),
  imports: z.array(z.string()),
  classes: z.number(),
  properties: z.number(),
  individuals: z.number(),
  concepts: z.number(),
  terms: z.number(),
  deprecated_terms: z.number(),
  languages: z.record(z.string(), z.number()),
});

const manifestSchema: z.ZodType<OntologyManifest> = z.object({
  manifest_version: z.literal(1),
  id: z.string(),
  version: z.string(),
  version_in_file: z.string().nullable(),
  resolver: z.string(),
  service: z.string(),
  url: z.string(),
  final_url: z.string(),
  // Manifests of earlier versions lack the fields with a default.
  versioned_url: z.string().nullable().default(null),
  announced_version: z.string().nullable().default(null),
  format: z.enum(FILE_FORMATS),
  // The name becomes the last part of a path, so it contains no separator and is not a folder.
  file: z.string().regex(/^(?!\.{1,2}$)[\w.+-]+$/),
  bytes: z.number().int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  received: z.object({ packing: z.string(), bytes: z.number(), sha256: z.string() }).nullable(),
  etag: z.string().nullable(),
  last_modified: z.string().nullable(),
  licence: z.string().nullable(),
  checks: z.object({
    depth: z.string(),
    statements: z.number().optional(),
    of: z.string().optional(),
    note: z.string().optional(),
  }),
  facts: factsSchema.nullable().default(null),
  fetched_at: z.string(),
  checked_at: z.string(),
});

/** Undefined if the text is not a manifest. */
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

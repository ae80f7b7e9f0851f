import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { ConfigError } from "../errors.ts";
import { writeAtomically } from "../files/atomic-file.ts";
import { ifExists } from "../files/disk-errors.ts";
import type { OntologyManifest } from "./ontology-manifest.ts";
import type { Source } from "./resolver.ts";
import { ontologyId } from "./sources-schema.ts";

const entrySchema = z.strictObject({
  resolver: z.string(),
  /** What decided which file it is, so that a change of `sources.yaml` is noticed. */
  target_formats: z.array(z.string()),
  extras: z.record(z.string(), z.string()),
  url: z.string(),
  version: z.string(),
  format: z.string(),
  bytes: z.number().int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, { error: "expected 64 hexadecimal digits" }),
  etag: z.string().nullable(),
  last_modified: z.string().nullable(),
  licence: z.string().nullable(),
});

const lockSchema = z.strictObject({
  lockfile_version: z.literal(1),
  // Ids become paths, and lockfiles come with other people's repositories.
  ontologies: z.record(ontologyId, entrySchema),
});

export type LockEntry = z.output<typeof entrySchema>;
export type Lockfile = ReadonlyMap<string, LockEntry>;

export function lockEntry({ resolver, targetFormats, extras }: Source, manifest: OntologyManifest): LockEntry {
  const { url, version, format, bytes, sha256, etag, last_modified, licence } = manifest;
  return {
    resolver,
    target_formats: [...targetFormats],
    extras: { ...extras },
    url,
    version,
    format,
    bytes,
    sha256,
    etag,
    last_modified,
    licence,
  };
}

/** Empty where there is none. Throws a ConfigError for one that is damaged: to write over it would lose what it says. */
export async function readLock(file: string): Promise<Lockfile> {
  const text = await ifExists(readFile(file, "utf8"));
  if (text === undefined) return new Map();
  const wrong = (path: string, message: string) =>
    new ConfigError([{ where: file, path, message: `${message}; restore it, or delete it and pull again` }]);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw wrong("", "it is no JSON");
    throw error;
  }
  const parsed = lockSchema.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw wrong((issue?.path ?? []).join("."), issue?.message ?? "it is no lockfile");
  }
  return new Map(Object.entries(parsed.data.ontologies));
}

/** The same entries are the same bytes, whoever writes them: keys sorted, no time, a newline at the end. */
export function formatLock(lock: Lockfile): string {
  const ontologies = Object.fromEntries([...lock].sort(([a], [b]) => (a < b ? -1 : 1)));
  return `${JSON.stringify(sorted({ lockfile_version: 1, ontologies }), undefined, 2)}\n`;
}

/** Whether anything was written: a lockfile that says the same already keeps its date. */
export async function writeLock(file: string, lock: Lockfile): Promise<boolean> {
  const text = formatLock(lock);
  if ((await ifExists(readFile(file, "utf8"))) === text) return false;
  await mkdir(dirname(file), { recursive: true });
  await writeAtomically(file, text);
  return true;
}

/** Whether a source still means what it meant when it was locked. */
export function matchesSource({ resolver, target_formats, extras }: LockEntry, source: Source): boolean {
  const locked = JSON.stringify(sorted({ resolver, target_formats, extras }));
  const wanted = { resolver: source.resolver, target_formats: source.targetFormats, extras: source.extras };
  return locked === JSON.stringify(sorted(wanted));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value) || typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, held]) => [key, sorted(held)]));
}

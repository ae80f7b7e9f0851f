import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { ConfigError } from "../errors.ts";
import { writeAtomically } from "../files/atomic-file.ts";
import { errnoOf, ifExists } from "../files/disk-errors.ts";
import { makeFolder } from "../files/make-folder.ts";
import type { OntologyManifest } from "./ontology-manifest.ts";
import type { Source } from "./resolver.ts";
import { idProblem } from "./sources-schema.ts";
import { labelOf } from "./version-label.ts";

const ontologyId = z.string().refine(id => idProblem(id) === undefined, {
  error: issue => idProblem(String(issue.input)),
});

/** A lockfile may come from an untrusted repository, so its URLs are checked before a request. */
const webUrl = z.string().refine(text => /^https?:$/.test(URL.parse(text)?.protocol ?? ""), {
  error: "expected an http or https URL",
});

const entrySchema = z.strictObject({
  // These three decide which file is meant. `--frozen` compares them with `sources.yaml`.
  resolver: z.string(),
  target_formats: z.array(z.string()),
  extras: z.record(z.string(), z.string()),
  url: webUrl,
  /** The URL of this version alone, if one is known; `--frozen` tries it first. */
  versioned_url: webUrl.nullable().default(null),
  version: z.string(),
  /** The version that the service announced, in short form. */
  announced_version: z.string().nullable().default(null),
  format: z.string(),
  bytes: z.number().int().nonnegative(),
  /** The length as received: smaller than `bytes` if the file was compressed. */
  received_bytes: z.number().int().nonnegative().nullable().default(null),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, { error: "expected 64 hexadecimal digits" }),
  etag: z.string().nullable(),
  last_modified: z.string().nullable(),
  licence: z.string().nullable(),
  /** The ids of the ontologies that import it; empty for a source of `sources.yaml`. */
  imported_by: z.array(ontologyId).default([]),
});

const lockSchema = z.strictObject({
  lockfile_version: z.literal(1),
  // Ids become paths, and a lockfile may come from an untrusted repository.
  ontologies: z.record(ontologyId, entrySchema),
});

export type LockEntry = z.output<typeof entrySchema>;
export type Lockfile = ReadonlyMap<string, LockEntry>;

export function lockEntry(
  { resolver, targetFormats, extras }: Source,
  manifest: OntologyManifest,
  importedBy: readonly string[] = [],
): LockEntry {
  const { url, version, format, bytes, sha256, etag, last_modified, licence, received } = manifest;
  return {
    resolver,
    target_formats: [...targetFormats],
    extras: { ...extras },
    url,
    versioned_url: manifest.versioned_url,
    version,
    announced_version: manifest.announced_version,
    format,
    bytes,
    received_bytes: received?.bytes ?? bytes,
    sha256,
    etag,
    last_modified,
    licence,
    imported_by: [...importedBy].sort(),
  };
}

/** Empty if there is no file. A damaged file is a ConfigError, because overwriting it would lose its entries. */
export async function readLock(file: string): Promise<Lockfile> {
  const text = await ifExists(readFile(file, "utf8")).catch(error => {
    // The system's own message does not name the folder.
    if (errnoOf(error) !== "EISDIR") throw error;
    throw new ConfigError([{ where: file, path: "", message: "is a folder; expected a lockfile" }], { cause: error });
  });
  if (text === undefined) return new Map();
  const problemAt = (path: string, message: string) =>
    new ConfigError([
      { where: file, path, message: `${message}; restore the lockfile, or delete it and run ontofetch pull` },
    ]);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw problemAt("", "not valid JSON");
    throw error;
  }
  const parsed = lockSchema.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw problemAt((issue?.path ?? []).join("."), issue?.message ?? "not a lockfile");
  }
  return new Map(Object.entries(parsed.data.ontologies));
}

/** Equal entries give equal bytes on every machine: keys sorted, no time stamp, a newline at the end. */
export function formatLock(lock: Lockfile): string {
  const ontologies = Object.fromEntries([...lock].sort(([a], [b]) => (a < b ? -1 : 1)));
  return `${JSON.stringify(withSortedKeys({ lockfile_version: 1, ontologies }), undefined, 2)}\n`;
}

/** Returns false and writes nothing if the file has this content already, so that its modification time stays. */
export async function writeLock(file: string, lock: Lockfile): Promise<boolean> {
  const text = formatLock(lock);
  if ((await ifExists(readFile(file, "utf8"))) === text) return false;
  makeFolder(dirname(file));
  await writeAtomically(file, text);
  return true;
}

/** One value of a source that differs between the lockfile and `sources.yaml`. */
export interface SourceDifference {
  /** The key in `sources.yaml`. */
  readonly key: string;
  readonly locked: string;
  readonly wanted: string;
}

/** Compares resolver, formats, extras and pins of `sources.yaml` with those that the lockfile was written for. */
export function sourceDifferences(entry: LockEntry, source: Source): readonly SourceDifference[] {
  const { version = entry.version, sha256 = entry.sha256 } = source;
  const pairs: readonly (readonly [key: string, locked: string, wanted: string])[] = [
    ["resolver", entry.resolver, source.resolver],
    ["target_formats", formatList(entry.target_formats), formatList(source.targetFormats)],
    ["extras", JSON.stringify(withSortedKeys(entry.extras)), JSON.stringify(withSortedKeys(source.extras))],
    ["version", entry.version, version === entry.version ? version : labelOf(version)],
    ["sha256", entry.sha256, sha256],
  ];
  return pairs.flatMap(([key, locked, wanted]) => (locked === wanted ? [] : [{ key, locked, wanted }]));
}

/** Whether an entry was written for the same file as the source names: pins are not compared. */
export function isSameSource(entry: LockEntry, source: Source): boolean {
  return sourceDifferences(entry, source).every(({ key }) => key === "version" || key === "sha256");
}

function formatList(formats: readonly string[]): string {
  return formats.length === 0 ? "any" : formats.join(", ");
}

function withSortedKeys(value: unknown): unknown {
  if (Array.isArray(value) || typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, member]) => [key, withSortedKeys(member)]));
}

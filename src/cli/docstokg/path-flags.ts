import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { ConfigError } from "../../errors.ts";
import { isS3Url, parseS3Url } from "../../files/s3/s3-url.ts";
import { findManifest, type Manifest, manifestName, readManifest } from "../../harvest/manifest/manifest.ts";
import { hasPassword } from "../../harvest/manifest/postgres/postgres-url.ts";
import { isPostgresUrl } from "../../stores/postgres/postgres-store-url.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Flags, Io } from "../program.ts";
import { usageError } from "../usage-error.ts";

const FOLDER_DEFAULT = "papers";
const MANIFEST_FLAG = "--manifest";
const MANIFEST_VARIABLE = "DOCSTOKG_MANIFEST";

export interface RunPaths {
  readonly folder: string;
  /** The path of the manifest file, or a PostgreSQL URL, which may contain a password: print `manifestName` of it. */
  readonly manifest: string;
  /**
   * Where telemetry is recorded. @default the folder of the manifest file. With PostgreSQL the output folder, and with
   * PostgreSQL and S3 `docstokg-telemetry` in the working directory
   */
  readonly telemetryFolder?: string | undefined;
}

export function addFolderFlag(command: Command): void {
  command.option("-o, --out <folder>", "output folder, or s3://bucket/prefix", FOLDER_DEFAULT);
}

export function addManifestFlag(command: Command): void {
  command.option(
    "--manifest <manifest>",
    "manifest file, or postgres://user@host/database " +
      "(default: DOCSTOKG_MANIFEST, else manifest.sqlite in the output folder)",
  );
}

/** For a command that reads the manifest only: its `--out` has no effect beside `--manifest`. */
export function addManifestOnlyFlags(command: Command): void {
  command.option("-o, --out <folder>", `output folder, or s3://bucket/prefix (default: ${FOLDER_DEFAULT})`);
  addManifestFlag(command);
}

/** Throws a ConfigError for a password on the command line, where other users of the machine can read it. */
export function pathsOf({ out = FOLDER_DEFAULT, manifest }: Flags, { env }: Pick<Io, "env">): RunPaths {
  const folder = folderOf({ out });
  if (typeof manifest === "string") return { folder, manifest: manifestOf(MANIFEST_FLAG, manifest) };
  const named = env[MANIFEST_VARIABLE];
  if (!named && isS3Url(folder))
    throw usageError(MANIFEST_FLAG, "a manifest cannot be in S3: name a file, or postgres://user@host/database");
  return { folder, manifest: named ? checkedManifest(MANIFEST_VARIABLE, named) : join(folder, "manifest.sqlite") };
}

/** The absolute path of the output folder; an `s3://` URL is checked and kept. */
export function folderOf({ out = FOLDER_DEFAULT }: Flags): string {
  const folder = String(out);
  if (folder.trim() === "") throw usageError("--out", "the text is empty; expected a folder, or s3://bucket/prefix");
  if (!isS3Url(folder)) return resolve(folder);
  parseS3Url(folder, "--out");
  return folder;
}

/** The flags with which other commands find the run, for messages; empty if a command finds it without flags. */
export interface LocationFlags {
  /** For a command that uses the output folder, such as `retry`. */
  readonly ofRun: string;
  /** For a command that only reads the manifest, such as `status`. */
  readonly ofManifest: string;
}

export function locationFlagsOf({ folder, manifest }: RunPaths, { env }: Pick<Io, "env">): LocationFlags {
  const out = folder === resolve(FOLDER_DEFAULT) ? "" : ` --out ${shellWord(folder)}`;
  const named = env[MANIFEST_VARIABLE];
  if (named && checkedManifest(MANIFEST_VARIABLE, named) === manifest) return { ofRun: out, ofManifest: "" };
  if (!named && manifest === join(folder, "manifest.sqlite")) return { ofRun: out, ofManifest: out };
  // A URL on the command line has no password.
  const ofManifest = ` --manifest ${shellWord(manifest)}`;
  return { ofRun: `${out}${ofManifest}`, ofManifest };
}

/** The text as one word of a command that a user can copy. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A manifest that a command line names. @param where the flag or argument */
export function manifestOf(where: string, text: string): string {
  if (isPostgresUrl(text) && hasPassword(text))
    throw usageError(
      where,
      "other users can read a password on the command line; set PGPASSWORD or PGPASSFILE, or the URL in DOCSTOKG_MANIFEST",
    );
  return checkedManifest(where, text);
}

/** The absolute path of a file; a URL is kept. Throws a ConfigError that names the flag, argument or variable. */
function checkedManifest(where: string, manifest: string): string {
  if (!isPostgresUrl(manifest)) return resolve(manifest);
  try {
    manifestName(manifest);
    return manifest;
  } catch (error) {
    throw error instanceof ConfigError ? usageError(where, error.problems[0]?.message ?? error.message) : error;
  }
}

/** Where a run records its telemetry. */
export function telemetryFolderOf({ folder, manifest, telemetryFolder }: RunPaths): string {
  if (telemetryFolder !== undefined) return telemetryFolder;
  if (!isPostgresUrl(manifest)) return dirname(manifest);
  return isS3Url(folder) ? resolve("docstokg-telemetry") : folder;
}

/**
 * Rejects with a ConfigError if there is no manifest: `openManifest` would create one.
 * @param where the flag or argument that names it. @default --manifest
 */
export async function openExistingManifest(manifest: string, where = MANIFEST_FLAG): Promise<Manifest> {
  return requireFound(await findManifest(manifest, systemTime), manifest, where);
}

/** Like `openExistingManifest`, for a command that only reads: its user need not be able to write a manifest file. */
export async function readExistingManifest(manifest: string, where = MANIFEST_FLAG): Promise<Manifest> {
  return requireFound(await readManifest(manifest, systemTime), manifest, where);
}

function requireFound(found: Manifest | undefined, manifest: string, where: string): Manifest {
  if (found !== undefined) return found;
  const flags = where === MANIFEST_FLAG ? "; set its folder with --out, or the file with --manifest" : "";
  const hint = isPostgresUrl(manifest) ? "; docstokg run creates it" : flags;
  throw usageError(where, `manifest not found: ${manifestName(manifest)}${hint}`);
}

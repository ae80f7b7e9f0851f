import { targetFormatOf } from "./format.ts";
import type { LockEntry } from "./lockfile.ts";
import type { OntologyManifest } from "./ontology-manifest.ts";
import type { Source } from "./resolver.ts";
import { labelOf } from "./version-label.ts";

/**
 * Whether a stored version has the pinned version, the pinned hash and a format of the source, and is not another file of
 * its archive.
 */
export function isWanted(manifest: OntologyManifest, source: Source, locked: LockEntry | undefined): boolean {
  const { version, sha256, targetFormats } = source;
  return (
    (version === undefined || manifest.version === labelOf(version)) &&
    (sha256 === undefined || manifest.sha256 === sha256) &&
    (targetFormats.length === 0 || targetFormats.includes(targetFormatOf(manifest.format))) &&
    !isOtherMember(manifest, source, locked)
  );
}

/**
 * Whether a stored version is another file of the archive than the one that the source names. Its entry in the lockfile
 * shows which one it is.
 */
export function isOtherMember(
  { sha256 }: OntologyManifest,
  { extras }: Source,
  locked: LockEntry | undefined,
): boolean {
  return locked?.sha256 === sha256 && locked.extras["member"] !== extras["member"];
}

/** Whether it is known what a stored version imports, if the source wants that. Only a complete check finds all imports. */
export function hasKnownImports({ checks }: OntologyManifest, { imports = false }: Source): boolean {
  return !imports || checks.depth === "full";
}

import { targetFormatOf } from "./format.ts";
import type { OntologyManifest } from "./ontology-manifest.ts";
import type { Source } from "./resolver.ts";
import { labelOf } from "./version-label.ts";

/** Whether a stored version has the pinned version, the pinned hash and a format of the source. */
export function isWanted(manifest: OntologyManifest, { version, sha256, targetFormats }: Source): boolean {
  return (
    (version === undefined || manifest.version === labelOf(version)) &&
    (sha256 === undefined || manifest.sha256 === sha256) &&
    (targetFormats.length === 0 || targetFormats.includes(targetFormatOf(manifest.format)))
  );
}

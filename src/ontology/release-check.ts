import { targetFormatOf } from "./format.ts";
import type { OntologyManifest } from "./ontology-manifest.ts";
import type { Source } from "./resolver.ts";
import { labelOf } from "./version-label.ts";

/** A release that loses more than a tenth of the terms was probably published by mistake. */
const MIN_KEPT_SHARE = 0.9;

/**
 * Why a valid file must not be added to the store; undefined if it may be added.
 * @param stored the stored versions of this ontology from the same URL, newest first.
 * @param isAccepted whether the user accepts changed bytes and lost terms.
 * @param locked the version that the last pull of the same source has locked. Some services have a URL for each release,
 * so it may be from another URL than this file.
 */
export function releaseProblem(
  { version, sha256 }: Source,
  manifest: OntologyManifest,
  stored: readonly OntologyManifest[],
  isAccepted: boolean,
  locked?: OntologyManifest,
): string | undefined {
  if (version !== undefined && labelOf(version) !== manifest.version) {
    return `the file has version ${manifest.version}, but version ${version} is pinned (version in sources.yaml, or <id>@${version} of the command)`;
  }
  if (sha256 !== undefined && sha256 !== manifest.sha256) {
    return `sha256 differs from the pinned one (sha256 in sources.yaml): ${short(manifest.sha256)}, expected ${short(sha256)}`;
  }
  if (isAccepted || stored.some(other => other.sha256 === manifest.sha256)) return undefined;
  const same = stored.find(other => other.version === manifest.version);
  if (same !== undefined) {
    return (
      `version ${manifest.version} was published again with other bytes: ` +
      `sha256 ${short(manifest.sha256)}, stored is ${short(same.sha256)} (--accept stores both)`
    );
  }
  // A pinned version may be an early one, which has fewer terms.
  const isComparable =
    version === undefined && locked && targetFormatOf(locked.format) === targetFormatOf(manifest.format);
  const [newest = isComparable ? locked : undefined] = stored.filter(({ facts }) => facts !== null);
  const before = newest?.facts?.terms ?? 0;
  const now = manifest.facts?.terms;
  if (now === undefined || now >= before * MIN_KEPT_SHARE) return undefined;
  const lost = Math.round((100 * (before - now)) / before);
  return (
    `version ${manifest.version} has ${now} terms, ${lost} % fewer than the ${before} of version ` +
    `${newest?.version} (--accept stores it)`
  );
}

function short(sha256: string): string {
  return `${sha256.slice(0, 12)}…`;
}

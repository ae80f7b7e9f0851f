import type { ResumableDownload } from "../files/resumable-download.ts";
import { fieldLine } from "../http/headers.ts";
import type { Inspection } from "./file-inspection.ts";
import { targetFormatOf } from "./format.ts";
import type { OntologyManifest } from "./ontology-manifest.ts";
import type { PlanEntry } from "./planner.ts";
import type { UnpackedFile } from "./unpacked-file.ts";
import { labelOf } from "./version-label.ts";
import { versionedUrl } from "./versioned-url.ts";

interface PulledFile {
  readonly saved: ResumableDownload & { readonly kind: "saved" };
  readonly unpackedFile: UnpackedFile;
  readonly found: Inspection & { readonly kind: "valid" };
  readonly finalUrl: string;
  readonly now: string;
}

/**
 * The manifest of a valid file. The version stated in the file takes precedence over the one that the service
 * announced.
 */
export function buildManifest(
  { source, service, url, version, licence }: PlanEntry,
  { saved, unpackedFile, found, finalUrl, now }: PulledFile,
): OntologyManifest {
  const { bytes, sha256, packing } = unpackedFile;
  const announced = version === undefined ? undefined : labelOf(version);
  return {
    manifest_version: 1,
    id: source.id,
    version: found.version?.label ?? announced ?? `sha256-${sha256.slice(0, 12)}`,
    version_in_file: found.version?.raw ?? null,
    resolver: source.resolver,
    service,
    url,
    final_url: withoutQuery(finalUrl),
    versioned_url: versionedUrl(
      [found.facts?.version_iri, url, finalUrl],
      found.version?.label ?? announced,
      targetFormatOf(found.format),
    ),
    announced_version: announced ?? null,
    format: found.format,
    file: `${source.id}.${targetFormatOf(found.format)}`,
    bytes,
    sha256,
    received: packing === undefined ? null : { packing, bytes: saved.bytes, sha256: saved.sha256 },
    etag: fieldLine(saved.headers["etag"]) ?? null,
    last_modified: fieldLine(saved.headers["last-modified"]) ?? null,
    licence: licence ?? found.facts?.licence ?? null,
    checks: found.checks,
    facts: found.facts,
    fetched_at: now,
    checked_at: now,
  };
}

/**
 * The version and the licence that a service states now for a stored file. A value that the service no longer states is
 * kept, because the service may only have been unavailable.
 */
export function announcedFields(
  { version, licence }: PlanEntry,
  stored: OntologyManifest,
): Pick<OntologyManifest, "announced_version" | "licence"> {
  return {
    announced_version: version === undefined ? stored.announced_version : labelOf(version),
    licence: licence ?? stored.licence,
  };
}

/** The query may contain a signature, which gives access for about an hour. */
function withoutQuery(text: string): string {
  const url = new URL(text);
  url.search = "";
  return url.href;
}

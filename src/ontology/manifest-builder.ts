import type { Saved } from "../files/resumable-download.ts";
import { fieldLine } from "../http/headers.ts";
import { labelOf } from "./checks/file-version.ts";
import type { Inspection } from "./file-inspection.ts";
import { targetOf } from "./format.ts";
import type { Manifest } from "./ontology-manifest.ts";
import type { PlanEntry } from "./planner.ts";
import type { OpenedFile } from "./unpacked-file.ts";

interface Findings {
  readonly saved: Saved & { readonly kind: "saved" };
  readonly opened: OpenedFile;
  readonly found: Inspection & { readonly kind: "sound" };
  readonly finalUrl: string;
  readonly now: string;
}

/** What is written down of a file that was fetched and found sound. Its own word for its version counts first. */
export function manifestOf(
  { source, service, url, version, licence }: PlanEntry,
  { saved, opened, found, finalUrl, now }: Findings,
): Manifest {
  const { bytes, sha256, packing } = opened;
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
    format: found.format,
    file: `${source.id}.${targetOf(found.format)}`,
    bytes,
    sha256,
    received: packing === undefined ? null : { packing, bytes: saved.bytes, sha256: saved.sha256 },
    etag: fieldLine(saved.headers["etag"]) ?? null,
    last_modified: fieldLine(saved.headers["last-modified"]) ?? null,
    licence: licence ?? null,
    checks: found.checks,
    fetched_at: now,
    checked_at: now,
  };
}

/** What stands behind a `?` may be a signature, which is a key for an hour. */
function withoutQuery(text: string): string {
  const url = new URL(text);
  url.search = "";
  return url.href;
}

import { sha256Of } from "../../files/file-hash.ts";
import { bibtexEntry, cslItem } from "../export/citation.ts";
import type { ListedWork } from "../manifest/manifest.ts";
import type { DownloadedFile, ManifestFiles } from "../manifest/manifest-files.ts";
import { redactedUrl } from "../redacted-url.ts";
import type { FileStore } from "../storage/file-store.ts";
import { isPathOfWork, type Layout, stemOf } from "./layout.ts";

/** `csl` is CSL-JSON. `json` is a JSON object with all known fields of the work. */
export const METADATA_FORMATS = ["csl", "bibtex", "json"] as const;
/** A format for metadata beside files. */
export type MetadataFormat = (typeof METADATA_FORMATS)[number];

const EXTENSIONS: Readonly<Record<MetadataFormat, string>> = { csl: "csl.json", bibtex: "bib", json: "json" };

/** The digits of the hash of a key, as in the names of files. */
const HASH_DIGITS = 16;

/** How metadata is written. */
export interface MetadataSettings {
  readonly format: MetadataFormat;
  /** The layout of the files. */
  readonly layout: Layout;
}

/** What metadata is written of. */
export type DescribedWork = Pick<ListedWork, "key" | "ids" | "metadata" | "sources">;

/**
 * Writes the metadata of a work beside its file: `a.pdf` gets `a.csl.json`, `a.bib` or `a.json`. If other works may have
 * that name too, the name gets a part of the hash of the key. So no work overwrites the metadata of another one,
 * whichever process writes it, and a later run finds the same name. Returns the path.
 */
export async function writeMetadata(
  fileStore: Pick<FileStore, "writeText">,
  manifestFiles: Pick<ManifestFiles, "newPartName">,
  file: Pick<DownloadedFile, "path" | "sha256" | "role">,
  work: DescribedWork,
  { format, layout }: MetadataSettings,
): Promise<string> {
  const { key, metadata, sources } = work;
  const ids = work.ids.url === undefined ? work.ids : { ...work.ids, url: redactedUrl(work.ids.url) };
  const cited = { key, ids, metadata };
  const text =
    format === "bibtex"
      ? bibtexEntry(cited)
      : `${JSON.stringify(format === "csl" ? cslItem(cited) : { key, ids, metadata, sources }, undefined, 2)}\n`;
  const suffix = isPathOfWork(layout, work, file) ? "" : `~${sha256Of(key).slice(0, HASH_DIGITS)}`;
  const path = `${stemOf(file.path)}${suffix}.${EXTENSIONS[format]}`;
  await fileStore.writeText(path, text, manifestFiles.newPartName());
  return path;
}

import { bibtexEntry, cslItem } from "../export/citation.ts";
import type { ListedWork } from "../manifest/manifest.ts";
import { redactedUrl } from "../redacted-url.ts";
import type { FileStore } from "../storage/file-store.ts";

/** `csl` is CSL-JSON. `json` is a JSON object with all known fields of the work. */
export const METADATA_FORMATS = ["csl", "bibtex", "json"] as const;
/** A format for metadata beside files. */
export type MetadataFormat = (typeof METADATA_FORMATS)[number];

const EXTENSIONS: Readonly<Record<MetadataFormat, string>> = { csl: "csl.json", bibtex: "bib", json: "json" };

/** Writes the metadata of a work beside its file: `a.pdf` gets `a.csl.json`, `a.bib` or `a.json`. */
export async function writeMetadata(
  fileStore: Pick<FileStore, "writeText">,
  path: string,
  work: Pick<ListedWork, "key" | "ids" | "metadata" | "sources">,
  format: MetadataFormat,
): Promise<void> {
  const { key, metadata, sources } = work;
  const ids = work.ids.url === undefined ? work.ids : { ...work.ids, url: redactedUrl(work.ids.url) };
  const cited = { key, ids, metadata };
  const text =
    format === "bibtex"
      ? bibtexEntry(cited)
      : `${JSON.stringify(format === "csl" ? cslItem(cited) : { key, ids, metadata, sources }, undefined, 2)}\n`;
  await fileStore.writeText(`${path.replace(/\.[a-z]+$/, "")}.${EXTENSIONS[format]}`, text);
}

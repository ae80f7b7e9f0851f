import type { WorkRecord } from "../manifest/manifest-reports.ts";
import type { WorkAuthor } from "../work.ts";

/** The value of a column for one work. */
export type Cell = string | number | boolean | undefined;

/** A column of an exported table. */
export interface ExportColumn {
  readonly name: string;
  readonly type: "text" | "integer" | "boolean";
  readonly cellOf: (record: WorkRecord) => Cell;
}

export const COLUMNS: readonly ExportColumn[] = [
  { name: "key", type: "text", cellOf: ({ key }) => key },
  { name: "doi", type: "text", cellOf: ({ ids }) => ids.doi },
  { name: "pmid", type: "text", cellOf: ({ ids }) => ids.pmid },
  { name: "pmcid", type: "text", cellOf: ({ ids }) => ids.pmcid },
  { name: "arxiv", type: "text", cellOf: ({ ids }) => ids.arxiv },
  { name: "openalex", type: "text", cellOf: ({ ids }) => ids.openalex },
  { name: "title", type: "text", cellOf: ({ metadata }) => metadata.title },
  { name: "authors", type: "text", cellOf: ({ metadata }) => metadata.authors?.map(nameOf).join("; ") },
  { name: "year", type: "integer", cellOf: ({ metadata }) => metadata.year },
  { name: "venue", type: "text", cellOf: ({ metadata }) => metadata.venue },
  { name: "type", type: "text", cellOf: ({ metadata }) => metadata.type },
  { name: "licence", type: "text", cellOf: ({ licence }) => licence },
  { name: "open_access", type: "text", cellOf: ({ metadata }) => metadata.openAccess },
  { name: "is_retracted", type: "boolean", cellOf: ({ metadata }) => metadata.isRetracted },
  { name: "state", type: "text", cellOf: ({ state }) => state },
  { name: "reason", type: "text", cellOf: ({ reason }) => reason },
  { name: "path", type: "text", cellOf: ({ files }) => files[0]?.path },
  { name: "sha256", type: "text", cellOf: ({ files }) => files[0]?.sha256 },
  { name: "bytes", type: "integer", cellOf: ({ files }) => files[0]?.bytes },
  { name: "media_type", type: "text", cellOf: ({ files }) => files[0]?.mediaType },
  { name: "further_files", type: "text", cellOf: ({ files }) => furtherFiles(files) },
  { name: "resolver", type: "text", cellOf: ({ resolver }) => resolver },
  { name: "version", type: "text", cellOf: ({ version }) => version },
  { name: "url", type: "text", cellOf: ({ url }) => url },
];

/** The files after the first one, with their roles: `article a.xml; supplement a.supplement.zip`. */
function furtherFiles(files: WorkRecord["files"]): string | undefined {
  const [, ...further] = files;
  return further.length === 0 ? undefined : further.map(({ role, path }) => `${role} ${path}`).join("; ");
}

function nameOf({ family, given, name }: WorkAuthor): string {
  return family === undefined ? (name ?? "") : given === undefined ? family : `${family}, ${given}`;
}

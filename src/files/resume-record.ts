import { readFile, rm } from "node:fs/promises";
import { writeAtomically } from "./atomic-file.ts";
import { ifExists, withDiskErrors } from "./disk-errors.ts";
import { sha256Of } from "./file-hash.ts";

/** Which version of a file the bytes of a partial file belong to. */
export interface ResumeRecord {
  /** A strong ETag or a date: see `strongValidator`. */
  readonly validator: string;
  /** Undefined if the server did not announce the length. */
  readonly totalBytes: number | undefined;
}

/** Stores the resume record of one partial file: in a file beside it, or in the manifest of a run. */
export interface ResumeRecordStore {
  /** `other-url`: the partial file has bytes of another URL, which a later download may resume. */
  load(): Promise<ResumeRecord | "other-url" | undefined>;
  /** Called before the first byte is written. */
  save(record: ResumeRecord): Promise<void>;
  /** Called before the partial file is emptied, and when it is deleted. */
  delete(): Promise<void>;
}

/** The content of `<path>.json`. It has no URL, because a URL may contain a key. */
interface ResumeRecordFile {
  readonly version: 1;
  readonly url_sha256: string;
  readonly validator: string;
  readonly total_bytes: number | null;
}

/** Keeps the record in `<path>.json`, where another process finds it. */
export function resumeRecordBeside(path: string, url: string): ResumeRecordStore {
  const recordPath = `${path}.json`;
  const urlHash = sha256Of(url);
  return {
    load: async () => {
      const record = parseRecord(await ifExists(readFile(recordPath, "utf8")));
      if (record === undefined) return undefined;
      if (record.url_sha256 !== urlHash) return "other-url";
      return { validator: record.validator, totalBytes: record.total_bytes ?? undefined };
    },
    save: ({ validator, totalBytes }) => {
      const record: ResumeRecordFile = { version: 1, url_sha256: urlHash, validator, total_bytes: totalBytes ?? null };
      return withDiskErrors(recordPath, () => writeAtomically(recordPath, `${JSON.stringify(record)}\n`));
    },
    delete: () => withDiskErrors(recordPath, () => rm(recordPath, { force: true })),
  };
}

/** Undefined for a record that cannot be parsed: then the download starts from the beginning. */
function parseRecord(text: string | undefined): ResumeRecordFile | undefined {
  if (text === undefined) return undefined;
  try {
    const record: Partial<ResumeRecordFile> | null = JSON.parse(text);
    const isRecord =
      record?.version === 1 &&
      typeof record.url_sha256 === "string" &&
      typeof record.validator === "string" &&
      (record.total_bytes === null || Number.isSafeInteger(record.total_bytes));
    return isRecord ? (record as ResumeRecordFile) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

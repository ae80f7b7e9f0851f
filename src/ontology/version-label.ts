import { formatOfName } from "./format.ts";

const LABEL_MAX = 64;

/** The version that a file states. */
export interface FileVersion {
  /** As written in the file: an IRI, `releases/2026-11-01`, `v3.93.0`. */
  readonly raw: string;
  /** The short form, see `labelOf`. */
  readonly label: string;
}

/** The date in the text; without a date the last path segment of an IRI that is not a file name, or the text itself. */
export function labelOf(raw: string): string {
  const [date] = /\d{4}-\d{2}-\d{2}/.exec(raw) ?? [];
  if (date !== undefined) return date;
  if (!/^https?:\/\//.test(raw) && !raw.includes("/")) return raw.slice(0, LABEL_MAX);
  const [path = ""] = raw.split(/[?#]/, 1);
  const parts = path.split("/").filter(part => part !== "");
  if (formatOfName(parts.at(-1) ?? "") !== undefined) parts.pop();
  return (parts.at(-1) ?? raw).slice(0, LABEL_MAX);
}

/**
 * A safe folder name. The label comes from the network, so every character except letters, digits and `._+-` is
 * replaced, and the name does not begin or end with a dot.
 */
export function folderOf(label: string): string {
  const plain = label.replace(/[^A-Za-z0-9._+-]+/g, "_").slice(0, LABEL_MAX);
  let start = 0;
  let end = plain.length;
  while (start < end && /[._]/.test(plain.charAt(start))) start += 1;
  while (end > start && /[._]/.test(plain.charAt(end - 1))) end -= 1;
  return end === start ? "unnamed" : plain.slice(start, end);
}

/** Digits of the hash in the name of a folder, if a folder of the version exists with other bytes. */
const SECOND_FOLDER_DIGITS = 8;
/** With so many digits, a server cannot construct two files with equal digits. */
const S3_FOLDER_DIGITS = 32;

/** The folder of a version that was published with several contents, for all contents but the first. */
export function secondFolderOf(label: string, sha256: string): string {
  return `${folderOf(label)}+${sha256.slice(0, SECOND_FOLDER_DIGITS)}`;
}

/** The folder of a version in a store in S3. */
export function s3FolderOf(label: string, sha256: string): string {
  return `${folderOf(label)}+${sha256.slice(0, S3_FOLDER_DIGITS)}`;
}

/** The digits of the hash in the name of a folder that `s3FolderOf` can have made; undefined for any other name. */
export function s3FolderDigits(folder: string): string | undefined {
  const at = folder.length - S3_FOLDER_DIGITS;
  const digits = folder.slice(at);
  return at > 1 && folder.charAt(at - 1) === "+" && /^[0-9a-f]+$/.test(digits) ? digits : undefined;
}

/**
 * The path of a file in the output folder. Names come from the key of the work or from the bytes, never from a server.
 * Every name is valid on every file system, and two works never share one, even if the file system ignores case.
 */
import { sha256Of } from "../../files/file-hash.ts";
import type { Work } from "../work.ts";
import type { FileKind } from "./file-check.ts";

export const LAYOUTS = ["flat", "by-doi", "content-addressed"] as const;
export type Layout = (typeof LAYOUTS)[number];

export function isLayout(text: string): text is Layout {
  return (LAYOUTS as readonly string[]).includes(text);
}

/** Longer names are shortened: some file systems allow 143 bytes, and paths are limited too. */
const NAME_CHARS_MAX = 96;

/** Names of devices on Windows, with any extension. */
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/;

/** Relative to the output folder, with forward slashes. */
export function filePathFor(layout: Layout, work: Pick<Work, "key" | "ids">, kind: FileKind, sha256: string): string {
  if (layout === "content-addressed") return `sha256/${sha256.slice(0, 2)}/${sha256.slice(2)}.${kind}`;
  const [, scheme = "work", name = work.key] = /^([a-z]+):(.*)$/s.exec(work.key) ?? [];
  if (layout === "flat") return `${scheme}_${safeName(name)}.${kind}`;
  const { doi } = work.ids;
  if (doi === undefined) return `${scheme}/${safeName(name)}.${kind}`;
  const slash = doi.indexOf("/");
  return `${safeName(doi.slice(0, slash))}/${safeName(doi.slice(slash + 1))}.${kind}`;
}

/** The same name with a number, for when another file has that name: `a.pdf`, `a~2.pdf`. */
export function numberedPath(target: string, number: number): string {
  return target.replace(/(\.[a-z]+)$/, `~${number}$1`);
}

/**
 * Keeps letters, digits, dots and hyphens; a slash becomes `_`. If anything else had to change, another key could give
 * the same name, so a part of the key's hash is added.
 */
function safeName(text: string): string {
  const lower = text.toLowerCase();
  const isKept = lower === text || /^(?:PMC|W)\d+$/.test(text);
  const plain = lower
    .replaceAll("/", "_")
    .replace(/[^a-z0-9._-]+/g, "-")
    .slice(0, NAME_CHARS_MAX);
  const isFaithful = isKept && /^[a-z0-9](?:[a-z0-9.-]*\/?[a-z0-9.-]*)$/.test(lower) && plain.length === text.length;
  if (isFaithful && !RESERVED.test(plain) && !plain.endsWith(".")) return plain;
  const stem = plain.replace(/^[._-]+|[._-]+$/g, "").slice(0, NAME_CHARS_MAX - 20);
  return `${stem === "" || RESERVED.test(stem) ? `work-${stem}` : stem}~${sha256Of(text).slice(0, 16)}`;
}

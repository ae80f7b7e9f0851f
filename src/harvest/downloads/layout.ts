/**
 * Where a file goes. Names are made of the work's key or of the bytes, never of anything that a server said: every name
 * is safe on every file system, and two works never share one, even where upper and lower case are the same.
 */
import { createHash } from "node:crypto";
import type { Work } from "../work.ts";
import type { FileKind } from "./file-check.ts";

export const LAYOUTS = ["flat", "by-doi", "content-addressed"] as const;
export type Layout = (typeof LAYOUTS)[number];

export function isLayout(text: string): text is Layout {
  return (LAYOUTS as readonly string[]).includes(text);
}

/** Longer names are cut: some file systems end at 143 bytes, and folders above take their part of a path. */
const NAME_CHARS_MAX = 96;

/** Windows opens devices under these names, whatever follows the dot. */
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/;

/** A path from the folder of the run, with forward slashes. */
export function filePathFor(layout: Layout, work: Pick<Work, "key" | "ids">, kind: FileKind, sha256: string): string {
  if (layout === "content-addressed") return `sha256/${sha256.slice(0, 2)}/${sha256.slice(2)}.${kind}`;
  const [, scheme = "work", name = work.key] = /^([a-z]+):(.*)$/s.exec(work.key) ?? [];
  if (layout === "flat") return `${scheme}_${safeName(name)}.${kind}`;
  const { doi } = work.ids;
  if (doi === undefined) return `${scheme}/${safeName(name)}.${kind}`;
  const slash = doi.indexOf("/");
  return `${safeName(doi.slice(0, slash))}/${safeName(doi.slice(slash + 1))}.${kind}`;
}

/** The same name once more, for when somebody else's file has it already. */
export function numberedPath(target: string, number: number): string {
  return target.replace(/(\.[a-z]+)$/, `~${number}$1`);
}

/**
 * Letters, digits, dots and hyphens stay, a slash becomes `_`. Where more than that had to change, so that another key
 * might come to the same, a part of the key's hash follows.
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

function sha256Of(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

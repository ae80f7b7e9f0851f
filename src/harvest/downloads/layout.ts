/**
 * The path of a file in the output folder. Names come from the ids and metadata of the work or from the hash of the
 * bytes, never from a file name that a server sent. Every name is valid on every file system. Different keys and DOIs
 * give different names, even if the file system ignores case.
 */
import { sha256Of } from "../../files/file-hash.ts";
import type { FileRole } from "../resolvers/resolver.ts";
import type { Work } from "../work.ts";
import type { StoredKind } from "./file-check.ts";

/** The layouts with a name. */
export const LAYOUTS = ["flat", "by-doi", "content-addressed"] as const;
/** A name of `LAYOUTS`, or a template such as `{year}/{doi}.{ext}`. */
export type Layout = (typeof LAYOUTS)[number] | LayoutTemplate;
/** Names of fields in braces, with `.{ext}` at the end. */
export type LayoutTemplate = `${string}{${string}}${string}`;

/** What a template may contain. A value that is not known becomes `unknown`. */
const FIELDS = [
  "key",
  "doi",
  "arxiv",
  "pmid",
  "pmcid",
  "openalex",
  "year",
  "venue",
  "type",
  "author",
  "title",
  "sha256",
];

/** What is wrong with a layout; undefined if it is valid. */
export function layoutProblem(text: string): string | undefined {
  if ((LAYOUTS as readonly string[]).includes(text)) return undefined;
  if (!text.includes("{"))
    return `${JSON.stringify(text)} is not one of ${LAYOUTS.join(", ")}, or a template such as {year}/{doi}.{ext}`;
  const unknown = [...text.matchAll(/\{([^{}]*)\}/g)]
    .map(([, name = ""]) => name)
    .find(name => name !== "ext" && !FIELDS.includes(name));
  if (unknown !== undefined)
    return `{${unknown}} is not one of ${[...FIELDS, "ext"].map(name => `{${name}}`).join(", ")}`;
  if (/[{}]/.test(text.replace(/\{[^{}]*\}/g, ""))) return "a template must have each field in one pair of braces";
  if (!text.endsWith(".{ext}")) return "a template must end with .{ext}";
  if (!/^[\w{}. /~-]+$/.test(text) || /(?:^|\/)(?:\.{0,2}(?:\/|$)|\.)/.test(text))
    return "a template must be a relative path of letters, digits, spaces and . _ ~ - without hidden or empty folders";
  return undefined;
}

/** Longer names are shortened: some file systems allow 143 bytes, and paths are limited too. */
const NAME_CHARS_MAX = 96;

/** Names of devices on Windows, with any extension. */
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/;

/** Relative to the output folder, with forward slashes. Sources and supplements have their role in the name. */
export function filePathFor(
  layout: Layout,
  work: Pick<Work, "key" | "ids" | "metadata">,
  kind: StoredKind,
  sha256: string,
  role: FileRole = "article",
): string {
  const extension = role === "article" ? kind : `${role}.${kind}`;
  if (layout.includes("{")) return templatePath(layout, work, extension, sha256);
  if (layout === "content-addressed") return `sha256/${sha256.slice(0, 2)}/${sha256.slice(2)}.${kind}`;
  const [, scheme = "work", name = work.key] = /^([a-z]+):(.*)$/s.exec(work.key) ?? [];
  if (layout === "flat") return `${scheme}_${safeName(name)}.${extension}`;
  const { doi } = work.ids;
  if (doi === undefined) return `${scheme}/${safeName(name)}.${extension}`;
  const slash = doi.indexOf("/");
  return `${safeName(doi.slice(0, slash))}/${safeName(doi.slice(slash + 1))}.${extension}`;
}

/** The fields of a template whose value no other work has. */
const OWN_FIELDS = ["doi", "arxiv", "pmid", "pmcid", "openalex"] as const;

/** The path without its extension. */
export function stemOf(path: string): string {
  return path.replace(/\.[a-z]+$/, "");
}

/**
 * Whether the layout gives this path, or a numbered one, to this work and no other. If not, other works may have the same
 * file, or one with another extension.
 */
export function isPathOfWork(
  layout: Layout,
  work: Pick<Work, "key" | "ids" | "metadata">,
  { path, sha256, role }: { readonly path: string; readonly sha256: string; readonly role?: FileRole | undefined },
): boolean {
  const isNamedByWork = layout.includes("{")
    ? layout.includes("{key}") || OWN_FIELDS.some(name => layout.includes(`{${name}}`) && work.ids[name] !== undefined)
    : layout !== "content-addressed";
  if (!isNamedByWork) return false;
  const own = stemOf(filePathFor(layout, work, "pdf", sha256, role));
  const stem = stemOf(path);
  return stem.startsWith(own) && /^(?:~\d{1,9})?$/.test(stem.slice(own.length));
}

function templatePath(
  template: string,
  { key, ids, metadata = {} }: Pick<Work, "key" | "ids" | "metadata">,
  extension: string,
  sha256: string,
): string {
  const [author] = metadata.authors ?? [];
  const values: Readonly<Record<string, string | number | undefined>> = {
    ...{ key, ...ids, sha256, ext: extension },
    ...{ year: metadata.year, venue: metadata.venue, type: metadata.type, title: metadata.title },
    author: author?.family ?? author?.name,
  };
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) return "unknown";
    return name === "ext" || name === "year" ? String(value) : safeName(String(value));
  });
}

/** The path with a number, for a file whose path another file has: `a~2.pdf` for `a.pdf`. */
export function numberedPath(target: string, number: number): string {
  return target.replace(/(\.[a-z0-9]+)$/, `~${number}$1`);
}

/**
 * Keeps lower-case letters, digits, dots and hyphens; a slash becomes `_`. If any other character had to change, another
 * text could give the same name, so 16 digits of the hash of the text are added.
 */
function safeName(text: string): string {
  const lower = text.toLowerCase();
  // `PMC123` and `W123` are always written in capitals, so no other id has the same small letters.
  const isCaseSafe = lower === text || /^(?:PMC|W)\d+$/.test(text);
  const plain = lower
    .replaceAll("/", "_")
    .replace(/[^a-z0-9._-]+/g, "-")
    .slice(0, NAME_CHARS_MAX);
  const isUnambiguous =
    isCaseSafe && /^[a-z0-9](?:[a-z0-9.-]*\/?[a-z0-9.-]*)$/.test(lower) && plain.length === text.length;
  if (isUnambiguous && !RESERVED.test(plain) && !plain.endsWith(".")) return plain;
  const stem = plain.replace(/^[._-]+|[._-]+$/g, "").slice(0, NAME_CHARS_MAX - 20);
  return `${stem === "" || RESERVED.test(stem) ? `work-${stem}` : stem}~${sha256Of(text).slice(0, 16)}`;
}

/**
 * The path of a file in the output folder. Names come from the ids and metadata of the work or from the hash of the
 * bytes, never from a file name that a server sent. Every name is valid on every file system. If a layout contains the
 * key, or the DOI of each work, different works get different names, even if the file system ignores case.
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
    return "a template must be a relative path of letters a to z, digits, spaces and . _ ~ - without hidden or empty folders";
  const names = text.replace(/\{[^{}]*\}/g, "x").split("/");
  if (names.some(name => RESERVED.test(name) || /[. ]$/.test(name)))
    return "a name in a template must not end with a dot or a space, and must not be a device of Windows such as nul";
  return undefined;
}

/** Longer values are shortened, because paths are limited. */
const VALUE_CHARS_MAX = 96;
/** Longer names are shortened: some file systems allow 143 bytes, and a number and the extension are added. */
const NAME_CHARS_MAX = 112;

/** Names of devices on Windows, with any extension. */
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

/**
 * Relative to the output folder, with forward slashes. Sources and supplements have their role in the name, except in
 * the layout content-addressed.
 */
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

/** Whether a path has the form that the layout content-addressed gives to a file. */
export function isContentAddress(path: string): boolean {
  return /^sha256\/[0-9a-f]{2}\/[0-9a-f]{62}\.[a-z0-9]+$/.test(path);
}

/** The fields of a template whose value no other work has. */
const OWN_FIELDS = ["doi", "arxiv", "pmid", "pmcid", "openalex"] as const;

/** The path without its extension. */
export function stemOf(path: string): string {
  return path.replace(/\.[a-z0-9]+$/, "");
}

/**
 * Whether the layout gives this path, or a numbered one, to this work and no other. If not, another work may have the
 * same path, or the same path with another extension.
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
    ...{ key, ...ids, sha256 },
    ...{ year: metadata.year, venue: metadata.venue, type: metadata.type, title: metadata.title },
    author: author?.family ?? author?.name,
  };
  const stem = template.slice(0, -".{ext}".length).replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = name === "ext" ? extension : values[name];
    if (value === undefined) return "unknown";
    return name === "ext" || name === "year" ? String(value) : safeName(String(value));
  });
  return `${stem.split("/").map(validName).join("/")}.${extension}`;
}

/** Each value of a template is valid alone, but together they may be too long or name a device. */
function validName(name: string): string {
  const plain = RESERVED.test(name) ? `work-${name}` : name;
  return plain.length <= NAME_CHARS_MAX ? plain : withHash(plain.slice(0, NAME_CHARS_MAX - HASH_CHARS), plain);
}

/** The path with a number, for a file whose path another file has: `a~2.pdf` for `a.pdf`. */
export function numberedPath(target: string, number: number): string {
  return target.replace(/(\.[a-z0-9]+)$/, `~${number}$1`);
}

/**
 * Keeps lower-case letters, digits, dots and hyphens; the first slash becomes `_`. Every other text gets 16 digits of
 * its hash, because another text could give the same name: texts with other characters, a second slash or `_`, long
 * texts, names of devices, a final dot.
 */
function safeName(text: string): string {
  const lower = text.toLowerCase();
  // `PMC123` and `W123` are always written in capitals, so no other id has the same small letters.
  const isCaseSafe = lower === text || /^(?:PMC|W)\d+$/.test(text);
  const plain = lower
    .replaceAll("/", "_")
    .replace(/[^a-z0-9._-]+/g, "-")
    .slice(0, VALUE_CHARS_MAX);
  const isUnambiguous =
    isCaseSafe && /^[a-z0-9](?:[a-z0-9.-]*\/?[a-z0-9.-]*)$/.test(lower) && plain.length === text.length;
  if (isUnambiguous && !RESERVED.test(plain) && !plain.endsWith(".")) return plain;
  const stem = plain.replace(/^[._-]+|[._-]+$/g, "").slice(0, VALUE_CHARS_MAX - 20);
  return withHash(stem === "" || RESERVED.test(stem) ? `work-${stem}` : stem, text);
}

const HASH_DIGITS = 16;
const HASH_CHARS = HASH_DIGITS + 1;

function withHash(name: string, text: string): string {
  return `${name}~${sha256Of(text).slice(0, HASH_DIGITS)}`;
}

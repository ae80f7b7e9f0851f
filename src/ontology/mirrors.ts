import { isAbsolute, join } from "node:path";
import { quote } from "../core/text/quote.ts";
import { ConfigError } from "../errors.ts";
import { isS3Url, parseS3Url } from "../files/s3/s3-url.ts";
import type { TargetFormat } from "./format.ts";
import type { Source } from "./resolver.ts";
import { folderOf, s3FolderOf, secondFolderOf } from "./version-label.ts";

/** A place that may have the file of a known version. */
export type MirrorCopy =
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "file"; readonly path: string };

/** What is known of a file before it is fetched. */
export interface KnownVersion {
  readonly version: string;
  readonly format: TargetFormat;
  readonly sha256?: string | undefined;
}

const PLACEHOLDER = /\{(id|version|file)\}/g;
/** One letter is the drive of a Windows path. */
const SCHEME = /^[a-z][a-z0-9+.-]+:/i;

/**
 * Where the mirrors of a source have a version. A mirror has the layout of a store, `<id>/<version>/<id>.<extension>`,
 * unless its address contains `{id}`, `{version}` or `{file}`. `s3://bucket/key` means the public https URL of the bucket.
 * A store may have the version in a folder with a part of the hash in its name. If the hash is known, these folders are
 * returned too, except for an address with placeholders.
 * @param folder the base of relative paths.
 * @throws ConfigError for an invalid mirror.
 */
export function mirrorCopies({ id, mirrors = [] }: Source, known: KnownVersion, folder: string): readonly MirrorCopy[] {
  const file = `${id}.${known.format}`;
  return mirrors.flatMap((mirror, index): readonly MirrorCopy[] => {
    const problem = mirrorProblem(mirror);
    if (problem !== undefined)
      throw new ConfigError([{ where: `sources.${id}`, path: `mirrors.${index}`, message: problem }]);
    const isTemplate = mirror.search(PLACEHOLDER) >= 0;
    const template = isTemplate ? mirror : `${withoutEndSlash(mirror)}/{id}/{version}/{file}`;
    const versions = isTemplate ? [folderOf(known.version)] : foldersOf(known);
    return versions.map((version): MirrorCopy => {
      const parts = { id, version, file };
      const fill = (encode: (text: string) => string) =>
        template.replace(PLACEHOLDER, (_, name: keyof typeof parts) => encode(parts[name]));
      if (isS3Url(mirror)) return { kind: "url", url: publicUrl(fill(String)) };
      if (SCHEME.test(mirror)) return { kind: "url", url: fill(encodeURIComponent) };
      const path = fill(String);
      return { kind: "file", path: isAbsolute(path) ? path : join(folder, path) };
    });
  });
}

/** The folders that a store may have this version in. */
function foldersOf({ version, sha256 }: KnownVersion): readonly string[] {
  if (sha256 === undefined) return [folderOf(version)];
  return [folderOf(version), secondFolderOf(version, sha256), s3FolderOf(version, sha256)];
}

/** What is wrong with a mirror of `sources.yaml`; undefined if it is valid. */
export function mirrorProblem(mirror: string): string | undefined {
  if (!SCHEME.test(mirror)) return undefined;
  const filled = mirror.replace(PLACEHOLDER, "x");
  const isValid = isS3Url(mirror) ? isS3Location(filled) : /^https:/i.test(mirror) && URL.canParse(filled);
  if (isValid) return undefined;
  return (
    `expected an https URL, s3://bucket/key or a folder (./name, if the name has a colon), found ${quote(mirror)}` +
    (isS3Url(mirror) ? "; a bucket has 3 to 63 lower-case letters, digits, dots and hyphens" : "")
  );
}

function isS3Location(text: string): boolean {
  try {
    parseS3Url(text, "");
    return true;
  } catch {
    return false;
  }
}

/** @param url `s3://bucket/key` */
function publicUrl(url: string): string {
  const [bucket, ...segments] = url.slice("s3://".length).split("/");
  // The service decodes a plus as a space, so each segment is encoded completely.
  return `https://${bucket}.s3.amazonaws.com/${segments.map(encodeURIComponent).join("/")}`;
}

function withoutEndSlash(base: string): string {
  return base.endsWith("/") ? base.slice(0, -1) : base;
}

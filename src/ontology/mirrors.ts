import { isAbsolute, join } from "node:path";
import type { OntologyFileFormat } from "./format.ts";
import { targetFormatOf } from "./format.ts";
import type { Source } from "./resolver.ts";
import { folderOf } from "./version-label.ts";

/** A place that may have the file of a known version. */
export type MirrorCopy =
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "file"; readonly path: string };

/**
 * Where the mirrors of a source have a version. A mirror has the layout of a store, `<id>/<version>/<id>.<extension>`,
 * unless its address contains `{id}`, `{version}` or `{file}`. `s3://bucket/key` means the public https URL of the bucket.
 * @param folder where relative folders start.
 */
export function mirrorCopies(
  { id, mirrors = [] }: Source,
  known: { readonly version: string; readonly format: OntologyFileFormat },
  folder: string,
): readonly MirrorCopy[] {
  const parts = { id, version: folderOf(known.version), file: `${id}.${targetFormatOf(known.format)}` };
  return mirrors.map((mirror): MirrorCopy => {
    const [, bucket, key = ""] = /^s3:\/\/([a-z0-9.-]{3,63})\/?(.*)$/.exec(mirror) ?? [];
    const base = bucket === undefined ? mirror : `https://${bucket}.s3.amazonaws.com/${key}`;
    const template = /\{(?:id|version|file)\}/.test(base) ? base : `${withoutEndSlash(base)}/{id}/{version}/{file}`;
    const isUrl = /^https:/i.test(base);
    const filled = template.replace(/\{(id|version|file)\}/g, (_, name: keyof typeof parts) =>
      isUrl ? encodeURIComponent(parts[name]) : parts[name],
    );
    if (isUrl) return { kind: "url", url: filled };
    return { kind: "file", path: isAbsolute(filled) ? filled : join(folder, filled) };
  });
}

function withoutEndSlash(base: string): string {
  return base.endsWith("/") ? base.slice(0, -1) : base;
}

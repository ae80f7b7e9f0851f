import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { packageFolder } from "../http/package-folder.ts";

export interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
  readonly zipped: Buffer;
}

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

let loaded: Promise<ReadonlyMap<string, PageFile>> | undefined;

/** The files of the dashboard by name, read once. Only these names are served, never a path from a request. */
export function pageFiles(): Promise<ReadonlyMap<string, PageFile>> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<ReadonlyMap<string, PageFile>> {
  // Written by `scripts/build.ts`.
  const folder = join(packageFolder(), "dist/web");
  const names = (await readdir(folder)).filter(name => extname(name) in TYPES);
  const files = names.map(async name => {
    const bytes = await readFile(join(folder, name));
    return [name, { type: TYPES[extname(name)] ?? "", bytes, zipped: gzipSync(bytes) }] as const;
  });
  return new Map(await Promise.all(files));
}

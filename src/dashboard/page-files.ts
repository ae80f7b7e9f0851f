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

const loaded = new Map<string, Promise<ReadonlyMap<string, PageFile>>>();

/**
 * The files of the dashboard by name, read once; after an error they are read again. Only these names are served, never a
 * path from a request. `scripts/build.ts` writes the folder.
 */
export function pageFiles(folder: string = join(packageFolder(), "dist/web")): Promise<ReadonlyMap<string, PageFile>> {
  const known = loaded.get(folder);
  if (known !== undefined) return known;
  const files = load(folder);
  loaded.set(folder, files);
  files.catch(() => loaded.delete(folder));
  return files;
}

async function load(folder: string): Promise<ReadonlyMap<string, PageFile>> {
  const names = (await readdir(folder)).filter(name => extname(name) in TYPES);
  const files = names.map(async name => {
    const bytes = await readFile(join(folder, name));
    return [name, { type: TYPES[extname(name)] ?? "", bytes, zipped: gzipSync(bytes) }] as const;
  });
  return new Map(await Promise.all(files));
}

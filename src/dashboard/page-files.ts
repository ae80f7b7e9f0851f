import { readdir, readFile } from "node:fs/promises";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

export interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
  readonly zipped: Buffer;
}

/** The path is the same from `src/` and from the installed `dist/`. `scripts/build.ts` writes it. */
const FOLDER = fileURLToPath(new URL("../../dist/web/", import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

let loaded: Promise<ReadonlyMap<string, PageFile>> | undefined;

/** The files of the page by name, read once. Only these names are ever served: no path comes from a request. */
export function pageFiles(): Promise<ReadonlyMap<string, PageFile>> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<ReadonlyMap<string, PageFile>> {
  const names = (await readdir(FOLDER)).filter(name => extname(name) in TYPES);
  const files = names.map(async name => {
    const bytes = await readFile(FOLDER + name);
    return [name, { type: TYPES[extname(name)] ?? "", bytes, zipped: gzipSync(bytes) }] as const;
  });
  return new Map(await Promise.all(files));
}

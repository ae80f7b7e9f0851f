import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { stampedId } from "./stamped-id.ts";

/**
 * The new name of a file that is rotated: `telemetry.jsonl.20261116T020657.123Z-3f9c1a`. It sorts after the names of all
 * its rotated files, also if some were rotated in the same millisecond or before the clock was set back.
 */
export async function rotatedName(file: string, wallMs: number): Promise<string> {
  const newest = (await rotatedFiles(file)).at(-1);
  const freeMs = newest === undefined ? wallMs : rotatedMs(file, newest) + 1;
  return `${file}.${stampedId(Math.max(wallMs, freeMs))}`;
}

/** The rotated files of a file, oldest first. */
export async function rotatedFiles(file: string): Promise<readonly string[]> {
  const folder = dirname(file);
  const names = await readdir(folder);
  return names
    .filter(name => name.startsWith(`${basename(file)}.`) && !Number.isNaN(rotatedMs(file, name)))
    .sort()
    .map(name => join(folder, name));
}

/** The time in the name of a rotated file, in epoch ms. NaN for another name. */
function rotatedMs(file: string, path: string): number {
  const suffix = basename(path).slice(basename(file).length);
  const stamp = /^\.(\d{8}T\d{6}\.\d{3}Z)-[0-9a-f]{6}$/.exec(suffix)?.[1] ?? "";
  return Date.parse(stamp.replace(/^(....)(..)(..T..)(..)/, "$1-$2-$3:$4:"));
}

import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { stampedId } from "./stamped-id.ts";

/** The new name of a file that is rotated; sorts by time: `telemetry.jsonl.20261116T020657.123Z-3f9c1a`. */
export function rotatedName(file: string, wallMs: number): string {
  return `${file}.${stampedId(wallMs)}`;
}

/** The rotated files of a file, oldest first. */
export async function rotatedFiles(file: string): Promise<readonly string[]> {
  const prefix = `${basename(file)}.`;
  const names = await readdir(dirname(file));
  return names
    .filter(name => name.startsWith(prefix) && /^\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{6}$/.test(name.slice(prefix.length)))
    .sort()
    .map(name => join(dirname(file), name));
}

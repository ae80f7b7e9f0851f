import { rm } from "node:fs/promises";
import { packingOfFile } from "./file-inspection.ts";
import type { Packing } from "./format.ts";
import { isTaxonomyPackage } from "./taxonomy-package.ts";
import { type UnpackOptions, unpack } from "./unpack.ts";
import { LAYERS_MAX, layerPath } from "./work-folder.ts";

/** A downloaded file after unpacking. */
export interface UnpackedFile {
  /** The downloaded file if it was not unpacked, else a new file beside it. */
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
  /** The outermost packing; undefined if the file was not packed. */
  readonly packing: Packing | undefined;
}

/**
 * Unpacks up to two layers; an XBRL taxonomy package stays as it is. If it rejects, it has deleted the files that it
 * created.
 */
export async function unpackLayers(
  path: string,
  { bytes, sha256 }: { readonly bytes: number; readonly sha256: string },
  options: UnpackOptions,
): Promise<UnpackedFile> {
  let unpackedFile: UnpackedFile = { path, bytes, sha256, packing: undefined };
  const created: string[] = [];
  try {
    for (let layer = 1; layer <= LAYERS_MAX; layer += 1) {
      const packing = await packingOfFile(unpackedFile.path);
      if (packing === undefined) break;
      if (packing === "zip" && (await isTaxonomyPackage(unpackedFile.path))) break;
      const to = layerPath(path, layer);
      created.push(to);
      const unpacked = await unpack(unpackedFile.path, to, packing, options);
      unpackedFile = { path: to, packing: unpackedFile.packing ?? packing, ...unpacked };
    }
    await removeFiles(created.filter(file => file !== unpackedFile.path));
    return unpackedFile;
  } catch (error) {
    await removeFiles(created);
    throw error;
  }
}

async function removeFiles(files: readonly string[]): Promise<void> {
  for (const file of files) await rm(file, { force: true });
}

import { rm } from "node:fs/promises";
import { packingOfFile } from "./file-inspection.ts";
import type { Packing } from "./format.ts";
import { type UnpackLimits, unpack } from "./unpack.ts";

/** A downloaded file after unpacking. */
export interface UnpackedFile {
  /** The downloaded file if it was not compressed, else a new file beside it. */
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly packing: Packing | undefined;
}

/** A gzip file inside a zip file occurs, and a tar file inside a gzip file. More layers exhaust a program. */
const LAYERS_MAX = 2;

/** Unpacks up to two layers. When it rejects with a DownloadError, it has deleted the files it created. */
export async function unpackLayers(
  path: string,
  { bytes, sha256 }: { readonly bytes: number; readonly sha256: string },
  limits: UnpackLimits,
): Promise<UnpackedFile> {
  let unpackedFile: UnpackedFile = { path, bytes, sha256, packing: undefined };
  for (let layer = 1; layer <= LAYERS_MAX; layer += 1) {
    const packing = await packingOfFile(unpackedFile.path);
    if (packing === undefined) break;
    const from = unpackedFile.path;
    const to = `${path}.${layer}`;
    try {
      const unpacked = await unpack(from, to, packing, limits);
      unpackedFile = { path: to, packing: unpackedFile.packing ?? packing, ...unpacked };
    } catch (error) {
      await rm(to, { force: true });
      throw error;
    } finally {
      if (from !== path) await rm(from, { force: true });
    }
  }
  return unpackedFile;
}

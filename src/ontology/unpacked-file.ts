import { rm } from "node:fs/promises";
import { detectFile } from "./file-inspection.ts";
import type { Packing } from "./format.ts";
import { type UnpackLimits, unpack } from "./unpack.ts";

/** A file as it is looked at and stored. */
export interface UnpackedFile {
  /** The file itself where it came plain, one beside it where it came packed. */
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly packing: Packing | undefined;
}

/** A zip of a gz is seen at times; what is packed more often than that was made to be. */
const LAYERS_MAX = 2;

/** The file itself, out of whatever it came in. Rejects with a DownloadError, and leaves nothing beside it then. */
export async function unpackLayers(
  path: string,
  { bytes, sha256 }: { readonly bytes: number; readonly sha256: string },
  limits: UnpackLimits,
): Promise<UnpackedFile> {
  let unpackedFile: UnpackedFile = { path, bytes, sha256, packing: undefined };
  for (let layer = 1; layer <= LAYERS_MAX; layer += 1) {
    const detected = await detectFile(unpackedFile.path);
    if (detected.kind !== "packed") break;
    const from = unpackedFile.path;
    const to = `${path}.${layer}`;
    try {
      const unpacked = await unpack(from, to, detected.packing, limits);
      unpackedFile = { path: to, packing: unpackedFile.packing ?? detected.packing, ...unpacked };
    } catch (error) {
      await rm(to, { force: true });
      throw error;
    } finally {
      if (from !== path) await rm(from, { force: true });
    }
  }
  return unpackedFile;
}

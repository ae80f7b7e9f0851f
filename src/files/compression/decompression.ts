import { open } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ByteSource } from "./byte-source.ts";
import { bunzip2 } from "./bzip2.ts";
import { unxz } from "./xz.ts";

const DECODERS = { bzip2: bunzip2, xz: unxz } as const;

/** A packing that Node cannot unpack itself. */
export type OwnPacking = keyof typeof DECODERS;

/** The unpacked bytes of a file. `onRead` gets the number of packed bytes that were read so far. */
export async function* decompressed(
  path: string,
  packing: OwnPacking,
  onRead: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  const file = await open(path);
  try {
    const bytes = new ByteSource(file.fd);
    for (const piece of DECODERS[packing](bytes)) {
      onRead(bytes.taken);
      if (piece.length > 0) yield piece;
      // Decoding is synchronous: without this, a large file would keep every other task waiting.
      await nextTurn();
    }
  } finally {
    await file.close();
  }
}

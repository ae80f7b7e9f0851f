import { DownloadError } from "../errors.ts";

/** Ontologies are text, with a ratio of about 20. A file that was made to fill the disk has a ratio of about 1000. */
const MAX_RATIO = 300;
/** Below this size the ratio is not checked, because a small file fills no disk. */
const RATIO_FREE_BYTES = 16_000_000;

/** Throws a DownloadError if the unpacked size or the compression ratio exceeds its limit. */
export function checkUnpackedSize(bytes: number, packedBytes: number, maxBytes: number): void {
  if (bytes > maxBytes) throw new DownloadError(`unpacked size exceeds ${maxBytes} bytes (max_file_mb)`);
  if (bytes > RATIO_FREE_BYTES && bytes > packedBytes * MAX_RATIO) {
    throw new DownloadError(`compression ratio exceeds ${MAX_RATIO}: ${bytes} bytes from ${packedBytes}`);
  }
}

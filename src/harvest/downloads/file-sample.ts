import { open } from "node:fs/promises";
import { type FileSample, HEAD_BYTES, TAIL_BYTES } from "./file-check.ts";

/** Reads the start and the end of a file, which decide what it is. */
export async function readSample(path: string, bytes: number): Promise<FileSample> {
  const file = await open(path, "r");
  try {
    const read = async (length: number, position: number) => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
      return buffer.subarray(0, bytesRead);
    };
    const tailBytes = Math.min(TAIL_BYTES, bytes);
    return {
      head: await read(Math.min(HEAD_BYTES, bytes), 0),
      tail: await read(tailBytes, bytes - tailBytes),
      bytes,
    };
  } finally {
    await file.close();
  }
}

import { open } from "node:fs/promises";
import { type FileSample, HEAD_BYTES, TAIL_BYTES } from "./file-check.ts";
import { PdfScan } from "./pdf-facts.ts";

const CHUNK_BYTES = 1024 * 1024;

/**
 * Reads the parts of a file that decide its kind: its start, its end, and the structure of a PDF.
 * @param isFullLength whether the file has the length that the server has announced
 */
export async function readSample(path: string, bytes: number, isFullLength: boolean): Promise<FileSample> {
  const file = await open(path, "r");
  try {
    const read = async (length: number, position: number) => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
      return buffer.subarray(0, bytesRead);
    };
    const tailBytes = Math.min(TAIL_BYTES, bytes);
    const head = await read(Math.min(HEAD_BYTES, bytes), 0);
    const sample = { head, tail: await read(tailBytes, bytes - tailBytes), bytes, isFullLength };
    if (!head.includes("%PDF-")) return sample;
    const scan = new PdfScan();
    for (let at = 0; at < bytes; at += CHUNK_BYTES) scan.add(await read(Math.min(CHUNK_BYTES, bytes - at), at));
    return { ...sample, pdf: scan.facts };
  } finally {
    await file.close();
  }
}

/** Reads the start of an HTML page as text, to find links in it. */
export async function readPageStart(path: string): Promise<string> {
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, 0);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}

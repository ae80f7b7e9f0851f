import { brotliDecompressSync, constants, gunzipSync, inflateSync } from "node:zlib";
import type { HeaderFields } from "../core/cache/stored-fields.ts";
import { fieldLine } from "./headers.ts";

/**
 * The text of the beginning of a body, without its content coding; the end of the data may be missing. Undefined if it
 * cannot be decoded, or if the decoded data is longer than `maxBytes`.
 */
export function decodedText(bytes: Buffer, headers: HeaderFields, maxBytes: number): string | undefined {
  const coding = (fieldLine(headers["content-encoding"]) ?? "").trim().toLowerCase();
  if (coding === "" || coding === "identity") return bytes.toString("utf8");
  const options = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: maxBytes };
  try {
    if (coding === "gzip" || coding === "x-gzip") return gunzipSync(bytes, options).toString("utf8");
    if (coding === "deflate") return inflateSync(bytes, options).toString("utf8");
    if (coding !== "br") return undefined;
    const flush = { ...options, finishFlush: constants.BROTLI_OPERATION_FLUSH };
    return brotliDecompressSync(bytes, flush).toString("utf8");
  } catch {
    // The body does not have the coding that its header names, or is too long.
    return undefined;
  }
}

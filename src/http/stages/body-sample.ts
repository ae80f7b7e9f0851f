import { brotliDecompressSync, constants, gunzipSync, inflateSync } from "node:zlib";
import { fieldLine } from "../headers.ts";
import type { ResponseHead } from "./stage.ts";

/** Bytes of a body that are looked at. The body of a throttle is short. */
const SAMPLE_BYTES_MAX = 4096;
/** A longer body is no message about a throttle. */
const BODY_BYTES_MAX = 65_536;
const DECODED_BYTES_MAX = 65_536;
const TEXT_TYPE = /^(?:application\/(?:[^;]*\+)?(?:json|xml)|text\/(?!event-stream))/i;

/** The beginning of a response, held back until it is known whether its body says that the host throttles. */
export class BodySample {
  readonly head: ResponseHead;
  readonly chunks: Buffer[] = [];
  #bytes = 0;

  constructor(head: ResponseHead) {
    this.head = head;
  }

  /** True for a response with a short body of text, JSON or XML. */
  static isPossible({ status, headers }: ResponseHead, method: string): boolean {
    if (method === "HEAD" || status === 204 || status === 304) return false;
    const length = fieldLine(headers["content-length"]);
    if (length !== undefined && !(Number(length) <= BODY_BYTES_MAX)) return false;
    return TEXT_TYPE.test(fieldLine(headers["content-type"]) ?? "");
  }

  /** True when enough of the body has arrived. */
  add(chunk: Buffer): boolean {
    this.chunks.push(chunk);
    this.#bytes += chunk.length;
    return this.#bytes >= SAMPLE_BYTES_MAX;
  }

  /** Empty if it cannot be decoded. */
  text(): string {
    const bytes = Buffer.concat(this.chunks).subarray(0, SAMPLE_BYTES_MAX);
    try {
      return decoded(bytes, fieldLine(this.head.headers["content-encoding"])).toString("utf8");
    } catch {
      // The body does not have the coding that its header names: no rule matches it.
      return "";
    }
  }
}

/** Decodes what the sample contains: the end of the data may be missing. */
function decoded(bytes: Buffer, coding: string | undefined): Buffer {
  const options = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: DECODED_BYTES_MAX };
  if (coding === "gzip" || coding === "x-gzip") return gunzipSync(bytes, options);
  if (coding === "deflate") return inflateSync(bytes, options);
  if (coding === "br")
    return brotliDecompressSync(bytes, { ...options, finishFlush: constants.BROTLI_OPERATION_FLUSH });
  return bytes;
}

import { decodedText } from "../decoded-text.ts";
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

  /** Empty if it cannot be decoded: then no rule matches it. */
  text(): string {
    const bytes = Buffer.concat(this.chunks).subarray(0, SAMPLE_BYTES_MAX);
    return decodedText(bytes, this.head.headers, DECODED_BYTES_MAX) ?? "";
  }
}

/** Splits bytes into lines of limited length. */
import { TextDecoder } from "node:util";

export interface InputLine {
  /** From 1. */
  readonly number: number;
  /** Without the line end; shortened if the line is too long. */
  readonly text: string;
  readonly isTooLong: boolean;
}

/** Decodes UTF-8, or UTF-16 with a byte order mark, which spreadsheets call "Unicode text". The mark is removed. */
export async function* decoded(chunks: AsyncIterable<Uint8Array | string>): AsyncGenerator<string> {
  let decoder: TextDecoder | undefined;
  let head: Uint8Array = new Uint8Array();
  for await (const chunk of chunks) {
    const bytes = typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk;
    if (decoder !== undefined) {
      yield decoder.decode(bytes, { stream: true });
      continue;
    }
    head = Buffer.concat([head, bytes]);
    if (head.length < MARK_BYTES) continue;
    decoder = new TextDecoder(encodingOf(head));
    yield decoder.decode(head, { stream: true });
  }
  yield decoder === undefined ? new TextDecoder().decode(head) : decoder.decode();
}

/** The length of a byte order mark of UTF-16. */
const MARK_BYTES = 2;

function encodingOf(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  return bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : "utf-8";
}

/** Lines end with LF or CRLF. Text beyond `charsMax` is dropped while it is read. */
export async function* linesOf(texts: AsyncIterable<string>, charsMax: number): AsyncGenerator<InputLine> {
  let number = 0;
  let pending = "";
  let isTooLong = false;
  const take = (part: string) => {
    // One more than allowed: the CR of a CRLF may be the last character of a chunk.
    if (pending.length + part.length > charsMax + 1) isTooLong = true;
    pending += part.slice(0, Math.max(0, charsMax + 1 - pending.length));
  };
  const finished = (): InputLine => {
    const text = pending.endsWith("\r") ? pending.slice(0, -1) : pending;
    const line = { number: ++number, text: text.slice(0, charsMax), isTooLong: isTooLong || text.length > charsMax };
    pending = "";
    isTooLong = false;
    return line;
  };
  for await (const text of texts) {
    let start = 0;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
      take(text.slice(start, end));
      yield finished();
      start = end + 1;
    }
    take(text.slice(start));
  }
  if (pending !== "") yield finished();
}

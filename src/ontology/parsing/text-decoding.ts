import { SyntaxProblem } from "./syntax-problem.ts";

/** A failed disk or transfer leaves blocks of zero bytes. A single zero byte may be part of a literal. */
const ZEROS = "\0".repeat(16);

/** The encoding of a file: by its byte order mark, else by its XML declaration, else UTF-8. */
export function encodingOf(head: Uint8Array): string {
  const [a, b, c, d] = head;
  if (a === 0xff && b === 0xfe) return "utf-16le";
  if (a === 0xfe && b === 0xff) return "utf-16be";
  if (a === 0x3c && b === 0 && c === 0x3f && d === 0) return "utf-16le";
  if (a === 0 && b === 0x3c && c === 0 && d === 0x3f) return "utf-16be";
  const start = Buffer.from(head.subarray(0, 200))
    .toString("latin1")
    .replace(/^\xef\xbb\xbf/, "");
  const end = start.startsWith("<?xml") ? start.indexOf("?>") : -1;
  if (end < 0) return "utf-8";
  const [, declared] = /\bencoding\s?=\s?["']([A-Za-z][\w.-]{0,40})["']/.exec(start.slice(0, end)) ?? [];
  return declared?.toLowerCase() ?? "utf-8";
}

/** Decodes a file chunk by chunk. Bytes that the encoding does not permit are a SyntaxProblem. */
export class TextDecoding {
  readonly #decoder: InstanceType<typeof TextDecoder>;
  readonly #encoding: string;
  #line = 1;

  constructor(encoding: string) {
    this.#encoding = encoding;
    try {
      this.#decoder = new TextDecoder(encoding, { fatal: true });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new SyntaxProblem(`unknown encoding ${JSON.stringify(encoding)}`);
    }
  }

  decode(bytes: Uint8Array): string {
    return this.#check(() => this.#decoder.decode(bytes, { stream: true }));
  }

  end(): string {
    return this.#check(() => this.#decoder.decode());
  }

  #check(decode: () => string): string {
    let text: string;
    try {
      text = decode();
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw new SyntaxProblem(`bytes that are not ${this.#encoding.toUpperCase()} after line ${this.#line}`);
    }
    if (text.includes(ZEROS)) throw new SyntaxProblem(`a block of zero bytes after line ${this.#line}`);
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) this.#line += 1;
    return text;
  }
}

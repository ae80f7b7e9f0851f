/** The parts of a PDF that a reader needs, found by their keywords. */
export interface PdfFacts {
  /** A page, a page tree, or an object stream, in which newer files keep both. */
  readonly hasPages: boolean;
  /** A cross-reference table, its trailer, or a cross-reference stream. */
  readonly hasXref: boolean;
  /** `%%EOF` at the end, before any padding. */
  readonly hasEof: boolean;
}

const PAGES = /\/Pages?\b|\/ObjStm\b/;
const XREF = /\bxref\b|\btrailer\b|\/XRef\b/;
/** Longer than every keyword, so that none is missed at the border of two chunks. */
const OVERLAP_CHARS = 16;
/** Readers accept `%%EOF` within this distance from the end. */
const EOF_WITHIN_CHARS = 2048;

/** Collects the facts from the chunks of a file, in their order. */
export class PdfScan {
  #hasPages = false;
  #hasXref = false;
  #border = "";
  /** The last characters without the padding after them. */
  #tail = "";

  add(chunk: Uint8Array): void {
    const text = this.#border + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("latin1");
    this.#hasPages ||= PAGES.test(text);
    this.#hasXref ||= XREF.test(text);
    this.#border = text.slice(-OVERLAP_CHARS);
    const end = lengthWithoutPadding(text);
    if (end > 0) this.#tail = (this.#tail + text.slice(0, end)).slice(-EOF_WITHIN_CHARS);
  }

  get facts(): PdfFacts {
    return { hasPages: this.#hasPages, hasXref: this.#hasXref, hasEof: this.#tail.includes("%%EOF") };
  }
}

/** Servers and archives pad files with NUL bytes and blank lines. */
function lengthWithoutPadding(text: string): number {
  let end = text.length;
  while (end > 0 && "\0\r\n\t ".includes(text[end - 1] ?? "x")) end -= 1;
  return end;
}

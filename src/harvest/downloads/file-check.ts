/**
 * Whether bytes are the file they are meant to be. What servers say about them (content types, names) is worth nothing:
 * the bytes decide. Pure; whoever has a file hands in how it begins and ends.
 */

import type { Reason } from "../reason.ts";
import { challengeIn } from "./challenge-page.ts";

export type FileKind = "pdf" | "xml" | "html";

/** So much of a file's beginning and end is looked at. */
export const HEAD_BYTES = 16_384;
export const TAIL_BYTES = 2048;

export interface FileSample {
  /** The first `HEAD_BYTES`, or all of it. */
  readonly head: Uint8Array;
  /** The last `TAIL_BYTES`, or all of it. */
  readonly tail: Uint8Array;
  readonly bytes: number;
}

export type FileCheckResult =
  | { readonly kind: "good"; readonly fileKind: FileKind }
  | { readonly kind: "bad"; readonly reason: Reason; readonly message: string };

/** Readers accept a header anywhere in here: servers put blank lines and marks in front of it. */
const PDF_HEADER_WITHIN = 1024;
/** Less is no article, whatever it says: a header, one page and a table of places take more. */
const PDF_BYTES_MIN = 200;

export function checkFile(wanted: FileKind, sample: FileSample): FileCheckResult {
  if (sample.bytes === 0) return bad("truncated", "nothing came");
  const head = latin1(sample.head);
  const isPdf = head.slice(0, PDF_HEADER_WITHIN).includes("%PDF-");
  if (wanted === "pdf" && isPdf) return checkPdf(sample);
  if (!isPdf && looksLikeHtml(head)) {
    const challenge = challengeIn(head);
    if (challenge !== undefined) return bad("challenge-page", challenge);
    return wanted === "html" ? checkHtml(sample) : bad("html-instead", titleOf(head));
  }
  if (wanted === "xml" && !isPdf) return checkXml(head, sample);
  return bad(wanted === "pdf" ? "not-a-pdf" : "not-xml", `it begins with ${beginning(head)}`);
}

export const MEDIA_TYPES: Readonly<Record<FileKind, string>> = {
  pdf: "application/pdf",
  xml: "application/xml",
  html: "text/html",
};

function looksLikeHtml(text: string): boolean {
  return /^(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--[\s\S]*?-->\s*)*<(?:!doctype\s+html|html[\s>])/i.test(text);
}

function checkPdf({ tail, bytes }: FileSample): FileCheckResult {
  if (bytes < PDF_BYTES_MIN) return bad("truncated", `a PDF of ${bytes} bytes`);
  if (!latin1(tail).includes("%%EOF")) return bad("truncated", "it has no end mark (%%EOF)");
  return { kind: "good", fileKind: "pdf" };
}

function checkHtml({ tail }: FileSample): FileCheckResult {
  if (!/<\/html\s*>/i.test(latin1(tail))) return bad("truncated", "it has no </html>");
  return { kind: "good", fileKind: "html" };
}

/** Services answer with small XML documents when something is wrong, and say 200 to it. */
const ERROR_ROOTS: ReadonlySet<string> = new Set(["error", "errorbean", "oai-pmh", "errors"]);

function checkXml(head: string, { tail }: FileSample): FileCheckResult {
  const [, root] = /^(?:\xef\xbb\xbf)?\s*(?:<[?!][\s\S]*?>\s*)*<([A-Za-z_][\w.:-]*)[\s/>]/.exec(head) ?? [];
  if (root === undefined) return bad("not-xml", `it begins with ${beginning(head)}`);
  if (ERROR_ROOTS.has(root.toLowerCase())) return bad("not-xml", `an error of the service, <${root}>`);
  const end = latin1(tail).trimEnd();
  if (!end.endsWith(">") || !end.includes(`</${root}`)) return bad("truncated", `it has no </${root}>`);
  return { kind: "good", fileKind: "xml" };
}

function bad(reason: Reason, message: string): FileCheckResult {
  return { kind: "bad", reason, message };
}

function titleOf(head: string): string {
  const [, title] = /<title[^>]*>([^<]{1,200})/i.exec(head) ?? [];
  return title === undefined ? "a page without a title" : `a page called ${JSON.stringify(plain(title))}`;
}

function beginning(head: string): string {
  return JSON.stringify(plain(head.slice(0, 24)));
}

/** What a terminal may show of a stranger's bytes. */
function plain(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, " ").trim();
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}

/**
 * Decides by its bytes whether a file is what was wanted. Content types and file names of servers are not reliable.
 * Pure: the caller passes the start and the end of the file, and the structure of a PDF.
 */

import { afterComments, afterProlog } from "../../core/text/markup-prolog.ts";
import { challengeIn } from "../challenge-page.ts";
import type { Reason } from "../reason.ts";
import type { FileRole } from "../resolvers/resolver.ts";
import type { PdfFacts } from "./pdf-facts.ts";

/** A format of articles. */
export type FileKind = "pdf" | "xml" | "html";
export const FILE_KINDS: readonly FileKind[] = ["pdf", "xml", "html"];

/** A format of stored files, which is also their extension: formats of articles, sources and supplements. */
export type StoredKind = FileKind | keyof typeof OTHER_TYPES;

/** Further formats that a file may have by its name or its first bytes. Anything else is `bin`. */
const OTHER_TYPES = {
  gz: "application/gzip",
  zip: "application/zip",
  tar: "application/x-tar",
  bin: "application/octet-stream",
  csv: "text/csv",
  doc: "application/msword",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  mp4: "video/mp4",
  ppt: "application/vnd.ms-powerpoint",
  pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
  txt: "text/plain",
  xls: "application/vnd.ms-excel",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
} as const;

/** Formats that are zip archives. */
const ZIPPED: readonly string[] = ["zip", "docx", "pptx", "xlsx"];
/** Formats that are recognised by their first bytes. */
const SIGNED: readonly string[] = [...ZIPPED, "pdf", "gz", "tar", "xml", "html"];

/** `no-eof`: a PDF with its announced length, pages and cross-references, but without `%%EOF` at its end. */
export type FileFlag = "no-eof";

/** How much of the start and the end of a file is checked. */
export const HEAD_BYTES = 16_384;
export const TAIL_BYTES = 2048;

export interface FileSample {
  /** The first `HEAD_BYTES`, or the whole file. */
  readonly head: Uint8Array;
  /** The last `TAIL_BYTES`, or the whole file. */
  readonly tail: Uint8Array;
  readonly bytes: number;
  /** Whether the file has the length that the server has announced. */
  readonly isFullLength: boolean;
  /** Undefined if the start has no PDF header. */
  readonly pdf?: PdfFacts | undefined;
}

export type FileCheckResult =
  | {
      readonly kind: "good";
      readonly fileKind: StoredKind;
      /** What is unusual about a file that can be read. */
      readonly flag?: FileFlag | undefined;
    }
  | { readonly kind: "bad"; readonly reason: Reason; readonly message: string };

/** PDF readers accept the header within this range: servers put blank lines and byte order marks before it. */
const PDF_HEADER_WITHIN = 1024;
/** Header, one page and the cross-reference table take more. */
const PDF_BYTES_MIN = 150;

/** The reason of a file that has another format than the wanted one. */
export const NOT_WANTED: Readonly<Record<FileKind, Reason>> = { pdf: "not-a-pdf", xml: "not-xml", html: "not-html" };

export function checkFile(wanted: FileKind, sample: FileSample): FileCheckResult {
  if (sample.bytes === 0) return bad("truncated", "the body is empty");
  const head = latin1(sample.head);
  const isPdf = head.slice(0, PDF_HEADER_WITHIN).includes("%PDF-");
  if (wanted === "pdf" && isPdf) return checkPdf(sample);
  if (!isPdf && looksLikeHtml(head)) {
    const challenge = challengeIn(head);
    if (challenge !== undefined) return bad("challenge-page", challenge);
    return wanted === "html" ? checkHtml(sample) : bad("html-instead", titleOf(head));
  }
  if (wanted === "xml" && !isPdf) return checkXml(head, sample);
  return bad(NOT_WANTED[wanted], `the file begins with ${beginning(head)}`);
}

/** Checks a source or supplement, which may have any format except that of an error page. */
export function checkOtherFile(role: FileRole, name: string, sample: FileSample): FileCheckResult {
  if (sample.bytes === 0) return bad("truncated", "the body is empty");
  const head = latin1(sample.head);
  if (looksLikeHtml(head)) {
    const challenge = challengeIn(head);
    return challenge === undefined ? bad("html-instead", titleOf(head)) : bad("challenge-page", challenge);
  }
  const fileKind = otherKind(name, head);
  // arXiv sends the PDF of a work that was submitted without source.
  if (role === "source" && fileKind === "pdf") return bad("no-copy", "the work has no source: the server sent a PDF");
  if (fileKind === "pdf") return checkPdf(sample);
  const error = fileKind === "xml" ? errorDocument(head) : undefined;
  if (error !== undefined) return error;
  const isCut = ZIPPED.includes(fileKind) && !latin1(sample.tail).includes("PK\x05\x06");
  return isCut ? bad("truncated", "end of file missing: no zip directory") : { kind: "good", fileKind };
}

/** The first bytes decide. For a zip archive and for unknown bytes, the extension of the name decides. */
function otherKind(name: string, head: string): StoredKind {
  const [, extension = ""] = /\.([a-z0-9]{2,4})$/i.exec(name) ?? [];
  const named = Object.keys(MEDIA_TYPES).find(kind => kind === extension.toLowerCase());
  const signed = signedKind(head);
  if (signed === "zip" && named !== undefined && ZIPPED.includes(named)) return named as StoredKind;
  if (signed !== undefined) return signed;
  return named === undefined || SIGNED.includes(named) ? "bin" : (named as StoredKind);
}

function signedKind(head: string): StoredKind | undefined {
  if (head.slice(0, PDF_HEADER_WITHIN).includes("%PDF-")) return "pdf";
  if (head.startsWith("\x1f\x8b")) return "gz";
  if (head.startsWith("PK\x03\x04") || head.startsWith("PK\x05\x06")) return "zip";
  if (head.startsWith("ustar", 257)) return "tar";
  return isXml(head, afterByteOrderMark(head)) ? "xml" : undefined;
}

export const MEDIA_TYPES: Readonly<Record<StoredKind, string>> = {
  pdf: "application/pdf",
  xml: "application/xml",
  html: "text/html",
  ...OTHER_TYPES,
};

/**
 * The elements that a page may begin with if it leaves out `<html>`, as short pages for errors and redirects do. These are
 * the ones by which browsers recognise HTML (https://mimesniff.spec.whatwg.org, 7.1), and `meta`.
 */
const FIRST_ELEMENTS = /^<(?:head|body|title|meta|script|style|iframe|h1|div|p|a|b|br|font|table)[\s/>]/i;

function looksLikeHtml(text: string): boolean {
  const begin = afterByteOrderMark(text);
  const start = afterComments(text, begin);
  const tag = text.slice(start, start + 40);
  // An XML document may have a root element with such a name.
  return /^<(?:!doctype\s{1,20}html|html[\s>])/i.test(tag) || (!isXml(text, begin) && FIRST_ELEMENTS.test(tag));
}

function isXml(text: string, begin: number): boolean {
  return text.startsWith("<?xml", begin);
}

function afterByteOrderMark(text: string): number {
  return text.startsWith("\xef\xbb\xbf") ? 3 : 0;
}

function checkPdf({ bytes, isFullLength, pdf }: FileSample): FileCheckResult {
  if (bytes < PDF_BYTES_MIN) return bad("truncated", `the PDF has only ${bytes} bytes`);
  const { hasPages, hasXref, hasEof } = pdf ?? NO_FACTS;
  if (!hasPages && (hasEof || isFullLength)) return bad("not-a-pdf", "the file has a PDF header, but no pages");
  if (!hasPages || !hasXref) return bad("truncated", "end of file missing: no cross-references");
  if (hasEof) return { kind: "good", fileKind: "pdf" };
  return isFullLength
    ? { kind: "good", fileKind: "pdf", flag: "no-eof" }
    : bad("truncated", "end of file missing: no %%EOF");
}

const NO_FACTS: PdfFacts = { hasPages: false, hasXref: false, hasEof: false };

function checkHtml({ tail }: FileSample): FileCheckResult {
  if (!/<\/html\s*>/i.test(latin1(tail))) return bad("truncated", "end of file missing: no </html>");
  return { kind: "good", fileKind: "html" };
}

/** Root elements of error documents, which some services send with status 200. */
const ERROR_ROOTS: ReadonlySet<string> = new Set(["error", "errorbean", "oai-pmh", "errors"]);

function rootOf(head: string): string | undefined {
  return /^<([A-Za-z_][\w.:-]*)[\s/>]/.exec(head.slice(afterProlog(head, afterByteOrderMark(head))))?.[1];
}

function errorDocument(head: string): FileCheckResult | undefined {
  const root = rootOf(head) ?? "";
  return ERROR_ROOTS.has(root.toLowerCase())
    ? bad("not-xml", `the service returned an error document <${root}>`)
    : undefined;
}

function checkXml(head: string, { tail }: FileSample): FileCheckResult {
  const root = rootOf(head);
  if (root === undefined) return bad("not-xml", `the file begins with ${beginning(head)}`);
  const error = errorDocument(head);
  if (error !== undefined) return error;
  const end = latin1(tail).trimEnd();
  if (!end.endsWith(">") || !end.includes(`</${root}`)) return bad("truncated", `end of file missing: no </${root}>`);
  return { kind: "good", fileKind: "xml" };
}

function bad(reason: Reason, message: string): FileCheckResult {
  return { kind: "bad", reason, message };
}

function titleOf(head: string): string {
  const [, title] = /<title[^>]*>([^<]{1,200})/i.exec(head) ?? [];
  return title === undefined ? "HTML page without title" : `HTML page titled ${JSON.stringify(plain(title))}`;
}

function beginning(head: string): string {
  return JSON.stringify(plain(head.slice(0, 24)));
}

/** Printable ASCII only: control characters could change the terminal. */
function plain(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, " ").trim();
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}

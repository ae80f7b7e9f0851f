import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { checkFile, checkOtherFile, type FileKind, HEAD_BYTES, TAIL_BYTES } from "./file-check.ts";
import { PdfScan } from "./pdf-facts.ts";

function judged(wanted: FileKind, text: string | Uint8Array, isFullLength = false): string {
  const bytes = typeof text === "string" ? Buffer.from(text, "latin1") : text;
  const scan = new PdfScan();
  for (let at = 0; at < bytes.length; at += 1000) scan.add(bytes.subarray(at, at + 1000));
  const verdict = checkFile(wanted, {
    head: bytes.subarray(0, HEAD_BYTES),
    tail: bytes.subarray(-TAIL_BYTES),
    bytes: bytes.length,
    isFullLength,
    pdf: scan.facts,
  });
  return verdict.kind === "good" ? (verdict.flag ?? "good") : verdict.reason;
}

function judgedSupplement(name: string, text: string): string {
  const bytes = Buffer.from(text);
  const verdict = checkOtherFile("supplement", name, {
    ...{ head: bytes, tail: bytes, bytes: bytes.length, isFullLength: true },
  });
  return verdict.kind === "good" ? verdict.fileKind : verdict.reason;
}

const PAGES = "1 0 obj <</Type /Pages /Kids [2 0 R]>> endobj 2 0 obj <</Type /Page>> endobj";
const PDF = `%PDF-1.7\n${PAGES}\n${"x".repeat(300)}\nxref\n0 3\ntrailer <</Root 1 0 R>>\nstartxref\n400\n%%EOF`;

test("a PDF is recognised by its header, pages, cross-references and %%EOF, with some bytes around them", () => {
  assert.equal(judged("pdf", PDF), "good");
  assert.equal(judged("pdf", `\xef\xbb\xbf\r\n\r\n${PDF}\r\n\0\0\0`), "good");
  assert.equal(judged("pdf", `${" ".repeat(1000)}${PDF}`), "good");
  assert.equal(judged("pdf", `${" ".repeat(1100)}${PDF}`), "not-a-pdf");
  assert.equal(judged("pdf", PDF.replace("%%EOF", "")), "truncated");
  assert.equal(judged("pdf", `${PDF}${"x".repeat(3000)}`), "truncated");
  assert.equal(judged("pdf", "%PDF-1.7\n%%EOF"), "truncated");
  assert.equal(judged("pdf", ""), "truncated");
});

test("padding after a PDF is ignored, and a missing %%EOF is only flagged if the length is as announced", () => {
  assert.equal(judged("pdf", `${PDF}${"\0".repeat(70_000)}`), "good");
  assert.equal(judged("pdf", `${PDF}${"\r\n \0".repeat(2000)}`), "good");
  assert.equal(judged("pdf", PDF.replace("%%EOF", ""), true), "no-eof");
  assert.equal(judged("pdf", PDF.slice(0, 200), true), "truncated");
  // Newer files have compressed pages and cross-references.
  const compressed = `%PDF-1.7\n9 0 obj <</Type/ObjStm>> ${"x".repeat(200)} <</Type/XRef/Root 1 0 R>>\nstartxref\n9\n%%EOF`;
  assert.equal(judged("pdf", compressed), "good");
});

test("a header and an end without pages are not a PDF", () => {
  assert.equal(judged("pdf", `%PDF-1.4\n${"lorem ipsum ".repeat(100)}\n%%EOF`), "not-a-pdf");
  assert.equal(judged("pdf", `%PDF-1.4\n${"lorem ipsum ".repeat(100)}`, true), "not-a-pdf");
});

test("the facts of a PDF do not depend on how the file is split into chunks", () => {
  const bytes = Buffer.from(`${PDF}${"\0".repeat(100)}`);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 120 }), { minLength: 1 }), sizes => {
      const scan = new PdfScan();
      for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
        const size = sizes[turn % sizes.length] ?? 1;
        scan.add(bytes.subarray(at, at + size));
        at += size;
      }
      assert.deepEqual(scan.facts, { hasPages: true, hasXref: true, hasEof: true });
    }),
  );
});

test("an HTML page instead of a file is distinguished from other content", () => {
  assert.equal(judged("pdf", "<!DOCTYPE html>\n<html>"), "html-instead");
  assert.equal(judged("pdf", '<?xml version="1.0"?>\n<!-- x --><!-- y -->\n<html lang="en">'), "html-instead");
  assert.equal(judged("pdf", "<html><title>Just a moment...</title>"), "challenge-page");
  assert.equal(judged("pdf", "<html><title>Making sure you&#39;re not a bot!</title>"), "challenge-page");
  assert.equal(judged("xml", "<html><head></head></html>"), "html-instead");
  assert.equal(judged("pdf", '{"error":"no"}'), "not-a-pdf");
  assert.equal(judged("pdf", "<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>"), "not-a-pdf");
  assert.equal(judged("xml", PDF), "not-xml");
  assert.equal(judged("html", PDF), "not-html");
  assert.equal(judged("html", "plain words"), "not-html");
});

test("an HTML page that leaves out its first tags is recognised, and an XML document with such a root is not one", () => {
  const parts = [
    '<head><meta http-equiv="refresh" content="0;url=/login"></head><body></body>',
    "<META HTTP-EQUIV='refresh'>",
    "<!-- moved --> <script>location = '/login'</script>",
    "<title>Sign in</title><form>",
    "<br />\n<b>Warning</b>: no connection\n<!DOCTYPE html><html></html>",
  ];
  for (const part of parts) {
    assert.equal(judged("pdf", part), "html-instead");
    assert.equal(judged("xml", part), "html-instead");
    assert.equal(judgedSupplement("table.csv", part), "html-instead");
  }
  for (const xml of ['<?xml version="1.0"?><table></table>', "<article><p/></article>", "<abstract></abstract>"])
    assert.equal(judged("xml", xml), "good");
  assert.equal(judgedSupplement("table.xml", '<?xml version="1.0"?><table></table>'), "xml");
});

test("an error document of a service is not stored as a supplement", () => {
  const document = '<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>';
  assert.equal(judgedSupplement("data.zip", document), "not-xml");
  assert.equal(judgedSupplement("data.xml", document), "not-xml");
  assert.equal(judgedSupplement("data.xml", '<?xml version="1.0"?><data/>'), "xml");
});

test("an XML document must end with its root element", () => {
  const jats = '<?xml version="1.0"?>\n<!DOCTYPE article SYSTEM "a.dtd">\n<article id="x"><front/></article>\n';
  assert.equal(judged("xml", jats), "good");
  assert.equal(judged("xml", jats.replace("</article>", "")), "truncated");
  assert.equal(judged("xml", "<Error><Code>NoSuchKey</Code></Error>"), "not-xml");
  assert.equal(judged("xml", "plain words"), "not-xml");
});

test("a wanted HTML page must have an end tag", () => {
  assert.equal(judged("html", "<!doctype html><html><p>text</p></html>\n"), "good");
  assert.equal(judged("html", "<!doctype html><html><p>te"), "truncated");
});

test("random bytes are never accepted", () => {
  fc.assert(
    fc.property(fc.constantFrom<FileKind>("pdf", "xml", "html"), fc.uint8Array({ maxLength: 5000 }), (kind, bytes) => {
      assert.notEqual(judged(kind, bytes), undefined);
      if (kind === "pdf" && !Buffer.from(bytes).includes("%PDF-")) assert.notEqual(judged(kind, bytes), "good");
    }),
  );
  for (const hostile of ["<!--".repeat(4000), "<?".repeat(8000), " <!x".repeat(4000), "<a".repeat(8000)]) {
    // A pattern with backtracking would not end in time.
    assert.notEqual(judged("xml", hostile), "good");
  }
});

test("comments and instructions that are repeated without a root element are read once", () => {
  for (const part of ["<!---->", "<?xclele/>/>", "<!DOCTYPE a><!---->"]) {
    const head = Buffer.from(part.repeat(HEAD_BYTES).slice(0, HEAD_BYTES));
    const sample = { head, tail: head.subarray(-TAIL_BYTES), bytes: head.length, isFullLength: true };
    assert.equal(checkFile("xml", sample).kind, "bad");
    assert.equal(checkFile("html", sample).kind, "bad");
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { checkFile, type FileKind, HEAD_BYTES, TAIL_BYTES } from "./file-check.ts";

function judged(wanted: FileKind, text: string | Uint8Array): string {
  const bytes = typeof text === "string" ? Buffer.from(text, "latin1") : text;
  const verdict = checkFile(wanted, {
    head: bytes.subarray(0, HEAD_BYTES),
    tail: bytes.subarray(-TAIL_BYTES),
    bytes: bytes.length,
  });
  return verdict.kind === "good" ? "good" : verdict.reason;
}

const PDF = `%PDF-1.7\n${"x".repeat(300)}\nstartxref\n9\n%%EOF`;

test("a PDF is recognised by its header and %%EOF, with some bytes around them", () => {
  assert.equal(judged("pdf", PDF), "good");
  assert.equal(judged("pdf", `\xef\xbb\xbf\r\n\r\n${PDF}\r\n\0\0\0`), "good");
  assert.equal(judged("pdf", `${" ".repeat(1000)}${PDF}`), "good");
  assert.equal(judged("pdf", `${" ".repeat(1100)}${PDF}`), "not-a-pdf");
  assert.equal(judged("pdf", PDF.replace("%%EOF", "")), "truncated");
  assert.equal(judged("pdf", `${PDF}${"x".repeat(3000)}`), "truncated");
  assert.equal(judged("pdf", "%PDF-1.7\n%%EOF"), "truncated");
  assert.equal(judged("pdf", ""), "truncated");
});

test("an HTML page instead of a file is told from other content", () => {
  assert.equal(judged("pdf", "<!DOCTYPE html>\n<html>"), "html-instead");
  assert.equal(judged("pdf", '<?xml version="1.0"?>\n<!-- x --><!-- y -->\n<html lang="en">'), "html-instead");
  assert.equal(judged("pdf", "<html><title>Just a moment...</title>"), "challenge-page");
  assert.equal(judged("pdf", "<html><title>Making sure you&#39;re not a bot!</title>"), "challenge-page");
  assert.equal(judged("xml", "<html><head></head></html>"), "html-instead");
  assert.equal(judged("pdf", '{"error":"no"}'), "not-a-pdf");
  assert.equal(judged("pdf", "<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>"), "not-a-pdf");
  assert.equal(judged("xml", PDF), "not-xml");
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

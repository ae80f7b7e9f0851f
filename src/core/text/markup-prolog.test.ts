import assert from "node:assert/strict";
import { test } from "node:test";
import { afterComments, afterProlog } from "./markup-prolog.ts";

const rest = (text: string) => text.slice(afterProlog(text));

test("the root follows the declaration, comments, instructions and the document type", () => {
  assert.equal(rest('<?xml version="1.0"?>\n<!-- a > b --><?pi x > y?><!DOCTYPE a>\n<!-- c --><a/>'), "<a/>");
  assert.equal(rest('<!DOCTYPE a [<!ENTITY b "c>d">]><a>[</a>'), "<a>[</a>");
  assert.equal(
    rest("<!DOCTYPE html><p>a [b]> c"),
    "<p>a [b]> c",
    "a bracket after the document type is not part of it",
  );
  assert.equal(rest('<?xml version="1.0"><a/>'), "<a/>", "an instruction without its second question mark");
  assert.equal(rest(" \n<a/>"), "<a/>");
  assert.equal(rest(""), "");
});

test("what is not closed is not skipped", () => {
  for (const text of ["<!-- a", "<?xml", "<!DOCTYPE a", "<!DOCTYPE a [<!ENTITY b", "<!ELEMENT a>"])
    assert.equal(rest(text), text);
});

test("comments end before a document type", () => {
  const text = "<!-- a --> <!doctype html>";
  assert.equal(text.slice(afterComments(text)), "<!doctype html>");
});

test("a text of many unclosed or closed parts is read once", () => {
  for (const part of ["<!---->", "<?a?>", "<?a/>/>", "<!--", "<!DOCTYPE a>", "<?"]) afterProlog(part.repeat(20_000));
});

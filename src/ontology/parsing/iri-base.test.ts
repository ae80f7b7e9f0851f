import assert from "node:assert/strict";
import { test } from "node:test";
import { IriBase } from "./iri-base.ts";

test("references are resolved as RFC 3986 shows", () => {
  const base = new IriBase("http://a/b/c/d;p?q");
  for (const [reference, resolved] of Object.entries({
    "g:h": "g:h",
    g: "http://a/b/c/g",
    "./g": "http://a/b/c/g",
    "g/": "http://a/b/c/g/",
    "/g": "http://a/g",
    "//g": "http://g",
    "?y": "http://a/b/c/d;p?y",
    "g?y": "http://a/b/c/g?y",
    "#s": "http://a/b/c/d;p?q#s",
    "g?y#s": "http://a/b/c/g?y#s",
    ";x": "http://a/b/c/;x",
    "": "http://a/b/c/d;p?q",
    ".": "http://a/b/c/",
    "..": "http://a/b/",
    "../g": "http://a/b/g",
    "../..": "http://a/",
    "../../g": "http://a/g",
    "../../../g": "http://a/g",
    "/./g": "http://a/g",
    "/../g": "http://a/g",
    "g.": "http://a/b/c/g.",
    "./g/.": "http://a/b/c/g/",
    "g/../h": "http://a/b/c/h",
    "g?y/../x": "http://a/b/c/g?y/../x",
  })) {
    assert.equal(base.resolve(reference), resolved, reference);
  }
});

test("a base without a path, and one without slashes, can be resolved against", () => {
  assert.equal(new IriBase("http://a").resolve("g"), "http://a/g");
  assert.equal(new IriBase("urn:a#b").resolve("#c"), "urn:a#c");
  assert.equal(new IriBase("urn:a").resolve("g"), "urn:g");
});

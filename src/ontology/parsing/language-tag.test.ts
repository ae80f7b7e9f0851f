import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "../../../test/ontology/inspect-text.ts";
import { languageTag } from "./language-tag.ts";
import { formatTerm } from "./n-triples-text.ts";

const INJECTED = "en .\n<http://injected> <http://p> <http://o> .\n#";

test("a tag is kept, an underscore becomes a hyphen, and a text that is not a tag is dropped", () => {
  for (const tag of ["en", "en-US", "zh-Hant-TW", "ar--rtl"]) assert.equal(languageTag(tag), tag);
  assert.equal(languageTag("en_US"), "en-US");
  for (const text of ["", "-", "en-", "en us", "en--up", "e1", "englishlanguage", INJECTED])
    assert.equal(languageTag(text), "");
});

test("a language that is not a tag adds no statements to N-Triples, nor a language to the facts", async () => {
  assert.equal(formatTerm("x", "literal", INJECTED), '"x"');
  assert.equal(formatTerm("x", "literal", "en_US"), '"x"@en-US');
  const values = [INJECTED, "en_US", "en-us"].map(language => ({ "@value": "x", "@language": language }));
  const found = await inspect(JSON.stringify({ "@id": "http://a", "http://p": values }));
  assert.ok(found.kind === "valid");
  assert.deepEqual(found.facts?.languages, { "en-us": 2 });
});

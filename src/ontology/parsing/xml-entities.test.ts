import assert from "node:assert/strict";
import { test } from "node:test";
import { declaredEntities } from "./xml-entities.ts";

test("entities have the values that the document type declares, with those declared before", () => {
  const entities = declaredEntities('<!DOCTYPE x [<!ENTITY a "urn:a"><!ENTITY b "&a;#b"><!ENTITY a "again">]>');
  assert.deepEqual(
    [...entities],
    [
      ["a", "urn:a"],
      ["b", "urn:a#b"],
    ],
  );
});

test("a predefined entity that is declared again keeps its meaning", () => {
  assert.deepEqual([...declaredEntities('<!DOCTYPE x [<!ENTITY lt "&#38;#60;"><!ENTITY amp "&#38;#38;">]>')], []);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { manifestOf } from "../../test/ontology/store-contract.ts";
import { formatManifest, parseManifest } from "./ontology-manifest.ts";

test("a manifest whose file is no name of a file in its folder is refused", () => {
  const isValid = (file: string) => parseManifest(formatManifest(manifestOf("", { file }))) !== undefined;
  for (const file of ["hp.obo", "hp..owl", ".hp", "a+b-c_d.ttl"]) assert.equal(isValid(file), true, file);
  for (const file of ["", ".", "..", "../hp.obo", "a/b", "a\\b", "a\0"]) assert.equal(isValid(file), false, file);
});

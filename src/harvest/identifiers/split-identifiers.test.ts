import assert from "node:assert/strict";
import { test } from "node:test";
import { splitIdentifiers } from "./split-identifiers.ts";

test("a URL that contains a separator and an identifier is one work, and ends before the next URL or a space", () => {
  const lines = [
    "https://x.example/get?ids=5,PMC1234;10.1234/abc",
    "https://x.example/a,https://x.example/b;10.1234/c 10.1234/d",
    '"https://x.example/e","10.1234/f"',
    "https://doi.org/10.1234/g,10.1234/h",
  ];
  assert.deepEqual(lines.map(splitIdentifiers), [
    ["https://x.example/get?ids=5,PMC1234;10.1234/abc"],
    ["https://x.example/a", "https://x.example/b;10.1234/c", "10.1234/d"],
    ["https://x.example/e", "10.1234/f"],
    ["https://doi.org/10.1234/g", "10.1234/h"],
  ]);
});

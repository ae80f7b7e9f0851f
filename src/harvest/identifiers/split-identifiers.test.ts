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

test("an identifier whose kind is followed by a space begins a new one", () => {
  for (const separator of ["; ", ", ", " ", ";"])
    assert.deepEqual(
      splitIdentifiers(["PMID 123", "DOI 10.1000/a", "arXiv 2101.00001", "PMCID PMC12", "pmid: 9"].join(separator)),
      ["PMID 123", "DOI:10.1000/a", "arXiv:2101.00001", "PMCID:PMC12", "pmid: 9"],
    );
  assert.deepEqual(splitIdentifiers("10.1000/a; PMID 123"), ["10.1000/a", "PMID 123"]);
  assert.deepEqual(splitIdentifiers("a DOI of nothing"), ["a DOI of nothing"]);
});

test("DOIs of registrants with subdivisions are divided like others", () => {
  for (const separator of [" ", ", ", ",", "; ", ";", " | "])
    assert.deepEqual(splitIdentifiers(`10.1000.10/a${separator}10.1000.10.2/b`), ["10.1000.10/a", "10.1000.10.2/b"]);
});

test("a URL that is an identifier ends before the next identifier", () => {
  for (const url of [
    "https://www.doi.org/10.1234/a",
    "https://arxiv.org/abs/2101.00001",
    "https://europepmc.org/article/PMC/PMC1",
  ])
    for (const separator of [",", ";"])
      assert.deepEqual(splitIdentifiers(`${url}${separator}10.1234/b`), [url, "10.1234/b"]);
});

test("a cell of 1 MB is divided in time, whatever it repeats", () => {
  const cell = (part: string) => part.repeat(2 ** 20 / part.length);
  // Patterns that read the rest of the text for each start would take minutes.
  assert.equal(splitIdentifiers(cell(",https://a.b")).length, Math.floor(2 ** 20 / 12));
  assert.equal(splitIdentifiers(cell("10.1234.1.1.1.1")).length, 1);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { filePathFor, isPathOfWork, LAYOUTS, type Layout, layoutProblem, numberedPath, stemOf } from "./layout.ts";

const HASH = "ab".repeat(32);
const flat = (key: string) => filePathFor("flat", { key, ids: {} }, "pdf", HASH);

test("plain names stay readable", () => {
  assert.equal(flat("doi:10.1234/abc.def-1"), "doi_10.1234_abc.def-1.pdf");
  assert.equal(flat("arxiv:2401.00001v2"), "arxiv_2401.00001v2.pdf");
  assert.equal(flat("pmcid:PMC1234567"), "pmcid_pmc1234567.pdf");
  assert.equal(filePathFor("by-doi", { key: "x:y", ids: { doi: "10.1234/abc" } }, "xml", HASH), "10.1234/abc.xml");
  assert.equal(filePathFor("by-doi", { key: "arxiv:2401.00001", ids: {} }, "pdf", HASH), "arxiv/2401.00001.pdf");
  assert.equal(
    filePathFor("content-addressed", { key: "x:y", ids: {} }, "pdf", HASH),
    `sha256/ab/${"ab".repeat(31)}.pdf`,
  );
});

test("a second file with the same name gets a number", () => {
  assert.equal(numberedPath("10.1234/a.b.pdf", 2), "10.1234/a.b~2.pdf");
});

test("names that could collide, are reserved or leave the folder get a hash", () => {
  for (const key of ["doi:10.1/a/b", "doi:10.1/a_b", "doi:10.1/A", "url:https://example.org/../../etc/passwd"]) {
    assert.match(flat(key), /^[a-z]+_[a-z0-9._-]+~[0-9a-f]{16}\.pdf$/);
  }
  const byDoi = (doi: string) => filePathFor("by-doi", { key: `doi:${doi}`, ids: { doi } }, "pdf", HASH);
  for (const doi of ["10.1/con", "10.1/nul.x", "10.1/..", "10.1/.hidden", "10.1/com1", "10.1/a."]) {
    assert.match(byDoi(doi), /^10\.1\/(?:work-)?[a-z0-9.-]*~[0-9a-f]{16}\.pdf$/);
    assert.doesNotMatch(byDoi(doi), /\/(?:con|nul|com1)\./);
  }
});

test("every name is valid on every file system, and two works never share one", () => {
  const key = fc.oneof(
    fc.string({ unit: "binary", maxLength: 300 }).map(text => `doi:10.1/${text}`),
    fc.stringMatching(/^doi:10\.\d\/[aA_./-]{1,6}$/),
    fc.webUrl().map(url => `url:${url}`),
  );
  const ids = (text: string) => (text.startsWith("doi:") ? { doi: text.slice(4) } : {});
  fc.assert(
    fc.property(fc.constantFrom(...LAYOUTS), key, key, (layout, one, other) => {
      const name = filePathFor(layout, { key: one, ids: ids(one) }, "pdf", HASH);
      for (const part of name.split("/")) {
        assert.match(part, /^[a-z0-9][a-z0-9._~-]*$/);
        assert.ok(part.length <= 130 && !/^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/.test(part), part);
      }
      const second = filePathFor(layout, { key: other, ids: ids(other) }, "pdf", HASH);
      if (layout !== "content-addressed" && one !== other) assert.notEqual(name, second);
    }),
    { numRuns: 2000 },
  );
});

test("a template names files by identifiers and metadata, and every value is a safe name", () => {
  const work = {
    key: "doi:10.1234/a b",
    ids: { doi: "10.1234/../x" },
    metadata: { year: 2020, venue: "Journal of / Things", authors: [{ family: "../Émile" }], title: "CON" },
  };
  const sha256 = "ab".repeat(32);
  const path = (template: Layout) => filePathFor(template, work, "pdf", sha256);
  assert.match(
    path("{year}/{venue}/{author}-{title}.{ext}"),
    /^2020\/journal-of-_-things~[0-9a-f]{16}\/[a-z-]*mile~[0-9a-f]{16}-[a-z-]+~[0-9a-f]{16}\.pdf$/,
  );
  assert.equal(path("{doi}.{ext}").includes("/"), false);
  assert.equal(path("{pmid}/{sha256}.{ext}"), `unknown/${sha256}.pdf`);
});

test("a name with several long values is shortened, and works that differ only in the end keep different names", () => {
  const long = (text: string) => `${"very long ".repeat(20)}${text}`;
  const work = (text: string) => ({
    ...{ key: "x:y", ids: {} },
    metadata: { title: long(text), venue: long("venue"), authors: [{ family: long("author") }] },
  });
  const template = "{venue}{author}/{author}-{title}-{venue}.{ext}";
  const path = filePathFor(template, work("a"), "pdf", HASH);
  for (const part of path.split("/")) assert.ok(part.length <= 130, part);
  assert.match(path, /^very-long-[a-z0-9~-]+~[0-9a-f]{16}\/very-long-[a-z0-9~-]+~[0-9a-f]{16}\.pdf$/);
  assert.notEqual(filePathFor(template, work("b"), "pdf", HASH), path);
  for (const kind of ["mp4", "docx"] as const)
    assert.equal(stemOf(filePathFor(template, work("a"), kind, HASH)), stemOf(path));
});

test("a template whose values make the name of a device gives a name that is valid on Windows", () => {
  const work = { key: "pmid:1", ids: { pmid: "1" } };
  assert.equal(filePathFor("Com{pmid}/lpt{pmid}.{ext}", work, "pdf", HASH), "work-Com1/work-lpt1.pdf");
  assert.equal(isPathOfWork("lpt{pmid}.{ext}", work, { path: "work-lpt1.pdf", sha256: HASH }), true);
});

test("a path belongs to its work, whatever extension and number it has", () => {
  const work = { key: "doi:10.1/a", ids: { doi: "10.1/a" } };
  for (const path of ["doi_10.1_a.pdf", "doi_10.1_a.mp4", "doi_10.1_a~2.mp4"])
    assert.equal(isPathOfWork("flat", work, { path, sha256: HASH }), true, path);
  for (const path of ["doi_10.1_ab.pdf", "doi_10.1_a~x.pdf"])
    assert.equal(isPathOfWork("flat", work, { path, sha256: HASH }), false, path);
});

test("a template is checked before the run", () => {
  for (const layout of ["flat", "{year}/{doi}.{ext}", "papers {year}/{key}.{ext}", "console/nul-{key}.{ext}"])
    assert.equal(layoutProblem(layout), undefined, layout);
  for (const layout of [
    "tree",
    "{doi}",
    "{nothing}.{ext}",
    "../{doi}.{ext}",
    "/{doi}.{ext}",
    ".hidden/{doi}.{ext}",
    "a//{doi}.{ext}",
    "a:b/{doi}.{ext}",
    "{doi.{ext}",
    "doi}.{ext}",
    "con/{doi}.{ext}",
    "nul.{ext}",
    "a/Com1.{doi}.{ext}",
    "papers./{doi}.{ext}",
    "papers /{doi}.{ext}",
  ])
    assert.notEqual(layoutProblem(layout), undefined, layout);
});

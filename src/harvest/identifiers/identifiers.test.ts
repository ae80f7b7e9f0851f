import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { canonicalDoi } from "./doi.ts";
import { identify } from "./identifiers.ts";

function keyOf(text: string, digitsAre?: "pmid"): string {
  const read = identify(text, digitsAre);
  return "work" in read ? read.work.key : `no: ${read.message}`;
}

function messageOf(text: string): string {
  const read = identify(text);
  return "work" in read ? `a work: ${read.work.key}` : read.message;
}

const spellings: Readonly<Record<string, readonly string[]>> = {
  "doi:10.1371/journal.pone.0033693": [
    "10.1371/journal.pone.0033693",
    "  10.1371/JOURNAL.PONE.0033693. ",
    "doi:10.1371/journal.pone.0033693",
    "DOI: 10.1371/journal.pone.0033693",
    "info:doi/10.1371/journal.pone.0033693",
    "doi.org/10.1371/journal.pone.0033693",
    "https://doi.org/10.1371/journal.pone.0033693/",
    "http://dx.doi.org/10.1371%2Fjournal.pone.0033693",
    "https://www.doi.org/10.1371%252Fjournal.pone.0033693?utm_source=x",
    "doi:https://doi.org/10.1371/journal.pone.0033693#sec2",
    "https://doi.org/https://doi.org/10.1371/journal.pone.0033693",
    "https://doi.org/https%3A%2F%2Fdx.doi.org%2F10.1371%2Fjournal.pone.0033693",
    "https://doi.org/doi:10.1371/journal.pone.0033693",
    "https://doi.org/10.1371/journal.pone.0033693%20",
    "10.1371/journal.pone.0033693%0A",
    "https://journals.plos.org/plosone/article?id=10.1371/journal.pone.0033693",
    "https://journals.plos.org/plosone/article/file?id=10.1371/journal.pone.0033693&type=printable",
  ],
  "doi:10.1002/abc.123": [
    "https://onlinelibrary.wiley.com/doi/10.1002/abc.123",
    "https://onlinelibrary.wiley.com/doi/abs/10.1002/ABC.123",
    "https://onlinelibrary.wiley.com/doi/pdf/10.1002/abc.123?download=true",
    "https://onlinelibrary.wiley.com/doi/10.1002/abc.123/full",
    "https://proxy.example.org/10.1002%2Fabc.123/pdf",
    "(10.1002/abc.123)",
    "10.1002/abc.123).",
  ],
  "doi:10.1002/(sici)1096-8644(199601)99:1<1::aid-ajpa1>3.0.co;2-#": [
    "10.1002/(SICI)1096-8644(199601)99:1<1::AID-AJPA1>3.0.CO;2-#",
    "https://doi.org/10.1002/(SICI)1096-8644(199601)99:1<1::AID-AJPA1>3.0.CO;2-#",
    "https://doi.org/10.1002/(SICI)1096-8644(199601)99:1%3C1::AID-AJPA1%3E3.0.CO;2-%23",
  ],
  "doi:10.1016/s0140-6736(05)71146-6": ["10.1016/S0140-6736(05)71146-6", "10.1016/S0140-6736(05)71146-6)"],
  "doi:10.1101/2020.03.03.974402": [
    "10.1101/2020.03.03.974402",
    "10.1101/2020.03.03.974402v2",
    "https://www.biorxiv.org/content/10.1101/2020.03.03.974402v1.full.pdf",
    "https://www.biorxiv.org/content/10.1101/2020.03.03.974402v1.full.pdf+html",
    "https://www.biorxiv.org/content/10.1101/2020.03.03.974402.full",
  ],
  "doi:10.1101/gad.314351.118v2": ["10.1101/gad.314351.118v2"],
  "arxiv:2104.12255": [
    "2104.12255",
    "arXiv:2104.12255",
    "arxiv: 2104.12255 [cs.LG]",
    "https://arxiv.org/abs/2104.12255",
    "http://export.arxiv.org/pdf/2104.12255.pdf",
    "https://www.arxiv.org/html/2104.12255/",
    "10.48550/arXiv.2104.12255",
    "https://doi.org/10.48550/ARXIV.2104.12255",
  ],
  "arxiv:2104.12255v3": [
    "2104.12255v3",
    "2104.12255V3",
    "https://arxiv.org/pdf/2104.12255v3",
    "10.48550/arXiv.2104.12255v3",
  ],
  "arxiv:hep-th/9901001v2": ["hep-th/9901001v2", "arXiv:hep-th/9901001v2", "https://arxiv.org/abs/hep-th/9901001v2"],
  "arxiv:math/0309136": ["math.GT/0309136", "https://arxiv.org/abs/math/0309136"],
  "pmid:20516115": [
    "pmid:20516115",
    "PMID: 20516115.",
    "pmid 20516115",
    "https://pubmed.ncbi.nlm.nih.gov/20516115/",
    "https://www.ncbi.nlm.nih.gov/pubmed/20516115",
    "https://www.ncbi.nlm.nih.gov/pmc/articles/pmid/20516115/",
    "https://europepmc.org/article/MED/20516115",
  ],
  "pmcid:PMC3040717": [
    "PMC3040717",
    "pmc3040717",
    "PMCID: PMC3040717",
    "pmcid:3040717",
    "PMC3040717.2",
    "https://pmc.ncbi.nlm.nih.gov/articles/PMC3040717/",
    "https://www.ncbi.nlm.nih.gov/pmc/articles/PMC3040717/pdf/nihms1.pdf",
    "https://www.ncbi.nlm.nih.gov/pmc/articles/3040717",
    "https://europepmc.org/articles/PMC3040717?pdf=render",
    "https://europepmc.org/article/PMC/PMC3040717",
  ],
  "openalex:W1982728624": [
    "W1982728624",
    "https://openalex.org/w1982728624",
    "https://api.openalex.org/works/W1982728624",
  ],
  "url:https://example.org/paper.pdf?v=1": [
    "https://example.org/paper.pdf?v=1",
    "HTTPS://EXAMPLE.ORG:443/a/../paper.pdf?v=1#page=3",
    "url:https://example.org/paper.pdf?v=1",
  ],
};

describe("every spelling of an identifier gives one key", () => {
  for (const [key, texts] of Object.entries(spellings)) {
    test(key, () => {
      for (const text of texts) assert.equal(keyOf(text), key, text);
      assert.equal(keyOf(key), key, "the key itself");
    });
  }
});

test("a URL that contains a DOI is kept beside the DOI", () => {
  const read = identify("https://onlinelibrary.wiley.com/doi/pdf/10.1002/abc.123");
  assert.deepEqual("work" in read && read.work.ids, {
    doi: "10.1002/abc.123",
    url: "https://onlinelibrary.wiley.com/doi/pdf/10.1002/abc.123",
  });
});

test("digits alone are a PubMed id only if the caller says so", () => {
  assert.match(messageOf("20516115"), /pmid:20516115/);
  assert.equal(keyOf("20516115", "pmid"), "pmid:20516115");
});

test("an unknown identifier is quoted in the message, with the valid forms", () => {
  assert.match(messageOf("10.12/abc"), /^"10\.12\/abc" is not a known identifier; expected a DOI \(10\.1234\/abc\)/);
  assert.match(messageOf("2113.12345"), /"2113\.12345" is not a known identifier/);
  assert.match(messageOf("foo-bar/9901001"), /is not a known identifier/);
  assert.match(messageOf("doi:hello"), /"doi:hello" is not a known identifier/);
  assert.match(messageOf("https://doi.org/about"), /contains no DOI/);
  assert.match(messageOf(""), /empty identifier/);
  assert.match(messageOf("a\u0007\u001b[31m"), /^"a\\u0007\\u001b/);
});

test("only http(s) URLs are accepted, and never with a password", () => {
  assert.match(messageOf("file:///etc/passwd"), /only http and https/);
  assert.match(messageOf("javascript:alert(1)"), /only http and https/);
  assert.match(messageOf("https://"), /is not a valid http\(s\) URL/);
  for (const text of ["https://anna:s3cret@example.org/x", "ftp://anna:s3cret@example.org/x"]) {
    assert.doesNotMatch(messageOf(text), /s3cret/);
    assert.doesNotMatch(messageOf(text), /^a work/);
  }
});

test("a DOI cannot leave the URL path that it is put into", () => {
  for (const text of ["10.1234/../admin", "10.1234/a/%2E%2E/b", "10.1234/./x", "https://doi.org/10.1234/..%2Fx"])
    assert.doesNotMatch(messageOf(text), /^a work/, text);
});

test("an identifier of any length is handled in time and shortened in messages", () => {
  for (const text of ["x".repeat(5_000_000), `10.1234/${"(".repeat(4000)}`, `10.1234/a${"%25".repeat(1300)}`]) {
    assert.ok(messageOf(text).length < 400);
  }
});

test("brackets after a DOI are counted once", () => {
  const text = `10.1234/a${")".repeat(2900)}`;
  for (let round = 0; round < 2000; round += 1) assert.equal(canonicalDoi(text), "10.1234/a");
  assert.equal(canonicalDoi("10.1234/((a))))"), "10.1234/((a))");
  assert.equal(canonicalDoi("10.1234/(a).]."), "10.1234/(a)");
});

const suffix = fc.string({
  unit: fc.oneof(fc.constantFrom(..."abzAZ019.-_;()/:<>[]#?&+%"), fc.string({ maxLength: 1 })),
  minLength: 1,
  maxLength: 30,
});

test("every spelling of a DOI gives the same canonical DOI", () => {
  fc.assert(
    fc.property(suffix, fc.integer({ min: 1000, max: 999_999 }), (text, prefix) => {
      const doi = canonicalDoi(`10.${prefix}/${text}`);
      fc.pre(doi !== undefined && !doi.startsWith("10.48550/"));
      if (doi === undefined) return;
      const escaped = doi.split("/").map(encodeURIComponent).join("/");
      const spellings = [
        doi,
        `doi:${doi}`,
        doi.replace(/[a-z]/g, letter => letter.toUpperCase()),
        `${doi}.`,
        `<${doi}>,`,
      ];
      for (const spelling of [
        ...spellings,
        `https://doi.org/${escaped}`,
        `http://dx.doi.org/${encodeURIComponent(doi)}`,
      ])
        assert.equal(keyOf(spelling), `doi:${doi}`, spelling);
    }),
    { numRuns: 2000 },
  );
});

test("the key of a work gives the same key when it is parsed", () => {
  const pieces = fc.constantFrom(
    "10.1234/",
    "doi:",
    "https://",
    "arxiv.org/abs/",
    "2401.00001",
    "v2",
    "PMC",
    "12",
    "%2F",
    "W1",
    "/",
    ".",
    "pmid:",
    "x",
    "?id=",
    "#",
    "@",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(pieces, { maxLength: 8 }).map(all => all.join("")),
        fc.webUrl(),
      ),
      text => {
        const read = identify(text);
        if ("work" in read) assert.equal(keyOf(read.work.key), read.work.key);
        else assert.ok(read.message.length > 10);
      },
    ),
    { numRuns: 5000 },
  );
});

test("the key of a long URL is shorter than the URL, and differs from the key of every other URL", () => {
  const long = `https://example.org/${"ab".repeat(2000)}`;
  const keys = [keyOf(long), keyOf(`${long}c`)];
  assert.equal(new Set(keys).size, 2);
  for (const key of keys) {
    assert.ok(key.length <= 2500);
    assert.ok(key.startsWith("url:https://example.org/abab"));
    assert.equal(keyOf(key), key);
  }
});

test("a URL of doi.org without a DOI is refused in every spelling", () => {
  for (const text of ["http:doi.org", "https://doi.org/", "HTTPS:\\\\dx.doi.org\\a"])
    assert.match((identify(text) as { readonly message: string }).message, /contains no DOI/);
});

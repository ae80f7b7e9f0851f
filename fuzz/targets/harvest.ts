import assert from "node:assert/strict";
import { ConfigError } from "../../src/errors.ts";
import { checkFile, type FileKind, HEAD_BYTES, TAIL_BYTES } from "../../src/harvest/downloads/file-check.ts";
import { PdfScan } from "../../src/harvest/downloads/pdf-facts.ts";
import { identify } from "../../src/harvest/identifiers/identifiers.ts";
import { splitIdentifiers } from "../../src/harvest/identifiers/split-identifiers.ts";
import { type Input, type InputFormat, inputsOfStream } from "../../src/harvest/inputs/inputs.ts";
import { RESOLVERS } from "../../src/harvest/resolvers/order.ts";
import { linksOfPage } from "../../src/harvest/resolvers/page-links.ts";
import type { Work } from "../../src/harvest/work.ts";
import type { FuzzTarget } from "../target.ts";

const WORK: Work = {
  key: "doi:10.1234/abc",
  ids: { doi: "10.1234/abc", arxiv: "2401.00001", pmid: "123", pmcid: "PMC123", openalex: "W1" },
};
const LISTS: Readonly<Record<InputFormat, { readonly seed: string; readonly words: readonly string[] }>> = {
  lines: {
    seed: "10.1234/abc\n# comment\nPMC123; pmid:4\nhttps://example.org/a.pdf",
    words: ["\r\n", "#", ";", "10.1"],
  },
  csv: { seed: 'DOI,Title,Year\n10.1234/abc,"a ""b"", c",2020\n,x,\n', words: ["\r\n", '"', ",", ";", "\t", "PMID"] },
  jsonl: {
    seed: '{"doi":"10.1234/abc","title":"a","year":2020}\n{"ids":{"pmid":"4"}}',
    words: ["{", "}", '"doi":', "[", "\n"],
  },
  bibtex: {
    seed: '@article{k, doi = {10.1234/abc}, title = "a {B} c", year = 2020 }',
    words: ["@", "{", "}", "=", '"', "#", "%", "\\'", "\\emph", "~", "$"],
  },
  ris: {
    seed: "TY  - JOUR\nDO  - 10.1234/abc\nTI  - a\n  b\nER  - \n\nPT J\nDI 10.1/x\nER\n",
    words: ["TY  - ", "ER  - ", "DO  - ", "\n"],
  },
};

export const harvestTargets: readonly FuzzTarget[] = [
  {
    name: "identifiers",
    seeds: ["10.1234/abc", "https://doi.org/10.1234/abc?x=1", "arXiv:2401.00001v2 [cs.DL]", "PMC123; pmid:4", "W123"],
    words: ["10.", "/", "doi:", "https://", "arxiv.org/abs/", "PMC", "pmid:", "W1", ";", "%2F", "\u200b", "\u202e"],
    run: input => {
      for (const token of splitIdentifiers(input.toString())) {
        const named = identify(token);
        if (!("work" in named)) assert(named.message !== "", "a message");
        else {
          const again = identify(named.work.key);
          assert("work" in again, `${named.work.key} is not read again`);
          assert.equal(again.work.key, named.work.key);
        }
      }
    },
  },
  ...Object.entries(LISTS).map(([format, { seed, words }]) => ({
    name: `list-${format}`,
    seeds: [seed],
    words,
    run: async (input: Buffer) => {
      const inputs = await inputsOf([input], format as InputFormat);
      const half = input.length >> 1;
      const chunked = await inputsOf([input.subarray(0, half), input.subarray(half)], format as InputFormat);
      assert.deepEqual(chunked, inputs, "the same in two chunks");
    },
  })),
  {
    name: "landing-page",
    seeds: [
      '<html><head><base href="/a/"><meta name="citation_pdf_url" content="b.pdf"><link rel=alternate type=application/pdf href=c.pdf></head>',
      '<script type="application/ld+json">{"@type":"ScholarlyArticle","license":"https://creativecommons.org/licenses/by/4.0/"}</script>',
    ],
    words: [
      "<meta ",
      "name=",
      "content=",
      "<base href=",
      "<link ",
      "<script>",
      "<!--",
      "-->",
      "]]>",
      "&amp;",
      "&#x",
      "</head>",
    ],
    run: input => {
      for (const { url } of linksOfPage(input.toString(), "https://example.org/x").rawCandidates)
        assert(url === undefined || url === null || /^https?:/.test(url), String(url));
    },
  },
  {
    name: "service-responses",
    seeds: [
      '{"message":{"DOI":"10.1234/abc","title":["a"],"link":[{"URL":"https://example.org/a.pdf","content-type":"application/pdf"}]}}',
      '{"results":[{"id":"https://openalex.org/W1","doi":"https://doi.org/10.1234/abc","best_oa_location":{"pdf_url":"https://example.org/a.pdf"}}]}',
      '{"response":{"docs":[{"doiId_s":"10.1234/abc","files_s":["https://example.org/a.pdf"]}]}}',
      '<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>http://arxiv.org/abs/2401.00001v1</id><title>a</title></entry></feed>',
      "<ListBucketResult><CommonPrefixes><Prefix>PMC123.1/</Prefix></CommonPrefixes></ListBucketResult>",
    ],
    words: [
      '"results":',
      '"message":',
      '"doi":',
      "null",
      "[",
      "{",
      '"https://example.org/b.pdf"',
      "<entry>",
      "</entry>",
      "<Prefix>",
      "<![CDATA[",
      "javascript:",
    ],
    run: input => {
      const body = input.toString();
      for (const resolver of RESOLVERS) {
        const url = resolver.requestFor(WORK)?.url ?? "https://example.org/";
        const finding = resolver.parse({ url, status: 200, headers: {}, body }, WORK);
        if (finding.kind !== "found") continue;
        for (const candidate of finding.candidates) assert.match(candidate.url, /^https?:\/\//);
      }
    },
  },
  {
    name: "file-check",
    seeds: [
      "%PDF-1.4\n1 0 obj <</Type /Page>> endobj\nxref\ntrailer\n%%EOF",
      "<?xml version='1.0'?><article/>",
      "<!doctype html><p>",
    ],
    words: ["%PDF-", "%%EOF", "/Pages", "xref", "<article", "<!DOCTYPE", "<html", "\0\0\0"],
    run: input => {
      const scan = new PdfScan();
      scan.add(input);
      const twice = new PdfScan();
      twice.add(input.subarray(0, input.length >> 1));
      twice.add(input.subarray(input.length >> 1));
      const sample = { head: input.subarray(0, HEAD_BYTES), tail: input.subarray(-TAIL_BYTES), bytes: input.length };
      for (const kind of ["pdf", "xml", "html"] satisfies readonly FileKind[]) {
        const result = checkFile(kind, { ...sample, isFullLength: true, pdf: scan.facts });
        assert.deepEqual(checkFile(kind, { ...sample, isFullLength: true, pdf: twice.facts }), result);
      }
    },
  },
];

/** The inputs of a list, and the message of the error that ended it: a table without a known column is refused. */
async function inputsOf(chunks: readonly Uint8Array[], format: InputFormat): Promise<readonly (Input | string)[]> {
  async function* stream() {
    yield* chunks;
  }
  const inputs: (Input | string)[] = [];
  try {
    for await (const input of inputsOfStream(stream(), "stdin", { format })) inputs.push(input);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    inputs.push(error.message);
  }
  return inputs;
}

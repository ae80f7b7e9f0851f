/** Recorded responses of the services. They are tested only if the collection is beside the project. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";
import { identify } from "../identifiers/identifiers.ts";
import { RESOLVERS } from "./order.ts";
import type { Candidate, Finding, Resolver } from "./resolver.ts";

const folder = resolve(import.meta.dirname, "../../../../shared/fixtures/apis");

interface Recording {
  readonly file: string;
  readonly resolver: string;
  readonly work: string;
  readonly url: string;
  readonly status?: number;
  readonly check: (finding: Finding) => void;
}

function findingIn({ file, resolver: name, work: token, url, status = 200 }: Recording): Finding {
  const resolver = RESOLVERS.find(each => each.name === name) as Resolver;
  const named = identify(token);
  assert.ok("work" in named);
  return resolver.parse({ url, status, headers: {}, body: readFileSync(resolve(folder, file), "utf8") }, named.work);
}

function candidatesOf(finding: Finding): readonly Candidate[] {
  return finding.kind === "found" ? finding.candidates : [];
}

const recordings: readonly Recording[] = [
  {
    file: "api.openalex.org/work-pone.0000030.json",
    resolver: "openalex",
    work: "10.1371/journal.pone.0000030",
    url: "https://api.openalex.org/works/doi:10.1371/journal.pone.0000030",
    check(finding) {
      assert.deepEqual(candidatesOf(finding)[0], {
        url: "https://journals.plos.org/plosone/article/file?id=10.1371/journal.pone.0000030&type=printable",
        kind: "pdf",
        version: "published",
        licence: "cc-by",
      });
      const landings = candidatesOf(finding).filter(({ kind }) => kind === "landing");
      assert.deepEqual(
        landings.map(({ url }) => new URL(url).host),
        ["doaj.org", "figshare.com", "hdl.handle.net"],
      );
      assert.ok(finding.kind === "found");
      assert.deepEqual(finding.ids, {
        doi: "10.1371/journal.pone.0000030",
        pmid: "17183658",
        openalex: "W1982728624",
      });
      assert.equal(finding.metadata?.year, 2006);
    },
  },
  {
    file: "api.openalex.org/work-select-open_access-2025.json",
    resolver: "openalex",
    work: "10.1021/acs.jctc.5b00178",
    url: "https://api.openalex.org/works/doi:10.1021/acs.jctc.5b00178",
    check(finding) {
      assert.deepEqual(candidatesOf(finding), [{ url: "https://www.osti.gov/biblio/1329576", kind: "landing" }]);
    },
  },
  {
    file: "api.openalex.org/work-not-found-404.html",
    resolver: "openalex",
    work: "10.1046/j.1365-2699.2003.00795",
    url: "https://api.openalex.org/works/x",
    status: 404,
    check: finding => assert.deepEqual(finding, { kind: "none", reason: "unknown-work" }),
  },
  {
    file: "api.unpaywall.org/doi-bronze-with-pdf.json",
    resolver: "unpaywall",
    work: "10.1073/pnas.1414271111",
    url: "https://api.unpaywall.org/v2/10.1073/pnas.1414271111",
    check(finding) {
      // Its landing pages are DOIs, which are left to landing_page.
      assert.deepEqual(candidatesOf(finding), [
        { url: "https://www.pnas.org/content/pnas/111/45/E4832.full.pdf", kind: "pdf", version: "published" },
      ]);
    },
  },
  {
    file: "api.unpaywall.org/doi-closed.json",
    resolver: "unpaywall",
    work: "10.1007/s40278-023-41815-2",
    url: "https://api.unpaywall.org/v2/10.1007/s40278-023-41815-2",
    check: finding => assert.ok(finding.kind === "none" && finding.reason === "not-open"),
  },
  {
    file: "api.crossref.org/work-elife.01567-polite-single-pdf-links.json",
    resolver: "crossref",
    work: "10.7554/eLife.01567",
    url: "https://api.crossref.org/works/10.7554/elife.01567",
    check(finding) {
      const stated = { version: "published", licence: "http://creativecommons.org/licenses/by/3.0/" } as const;
      assert.deepEqual(candidatesOf(finding), [
        { url: "https://cdn.elifesciences.org/articles/01567/elife-01567-v1.pdf", kind: "pdf", ...stated },
        { url: "https://cdn.elifesciences.org/articles/01567/elife-01567-v1.xml", kind: "xml", ...stated },
      ]);
      assert.ok(
        finding.kind === "found" && finding.metadata?.year === 2014 && finding.metadata?.title?.startsWith("Automated"),
      );
    },
  },
  {
    file: "api.crossref.org/work-pone.0033693-public-pool.json",
    resolver: "crossref",
    work: "10.1371/journal.pone.0033693",
    url: "https://api.crossref.org/works/10.1371/journal.pone.0033693",
    check(finding) {
      assert.ok(finding.kind === "none" && finding.reason === "no-copy");
      assert.deepEqual(finding.ids, { doi: "10.1371/journal.pone.0033693" });
      const { authors, title, ...rest } = finding.metadata ?? {};
      assert.equal(authors?.length, 6);
      assert.match(title ?? "", /^Methylphenidate Exposure/);
      assert.deepEqual(rest, {
        issue: "3",
        licence: "http://creativecommons.org/licenses/by/4.0/",
        pages: "e33693",
        publisher: "Public Library of Science (PLoS)",
        registrar: "crossref",
        type: "article-journal",
        venue: "PLoS ONE",
        volume: "7",
        year: 2012,
      });
    },
  },
  {
    file: "api.crossref.org/work-not-found-404.txt",
    resolver: "crossref",
    work: "10.1371/notarealdoi",
    url: "https://api.crossref.org/works/10.1371/notarealdoi",
    status: 404,
    check: finding => assert.deepEqual(finding, { kind: "none", reason: "unknown-work" }),
  },
  {
    file: "export.arxiv.org/id-1605.08386.xml",
    resolver: "arxiv",
    work: "arXiv:1605.08386",
    url: "https://export.arxiv.org/api/query?id_list=1605.08386",
    check(finding) {
      assert.deepEqual(finding, {
        kind: "found",
        candidates: [{ url: "https://arxiv.org/pdf/1605.08386v1", kind: "pdf", version: "submitted" }],
        ids: { arxiv: "1605.08386" },
        metadata: {
          title: "Heat-bath random walks with Markov bases",
          authors: [{ name: "Caprice Stanley" }, { name: "Tobias Windisch" }],
          venue: "arXiv",
          year: 2016,
          type: "article",
        },
      });
    },
  },
  {
    file: "export.arxiv.org/id-unknown-empty-feed.xml",
    resolver: "arxiv",
    work: "arXiv:0001.0000",
    url: "https://export.arxiv.org/api/query?id_list=0000.0000",
    check: finding => assert.deepEqual(finding, { kind: "none", reason: "unknown-work" }),
  },
  {
    file: "api.semanticscholar.org/paper-openaccesspdf-direct.json",
    resolver: "semantic_scholar",
    work: "10.1073/pnas.1414271111",
    url: "https://api.semanticscholar.org/graph/v1/paper/DOI:10.1073/pnas.1414271111",
    check(finding) {
      assert.deepEqual(candidatesOf(finding), [
        { url: "https://www.pnas.org/content/pnas/111/45/E4832.full.pdf", kind: "pdf" },
      ]);
      assert.ok(finding.kind === "found" && finding.ids?.pmid === "25349395");
    },
  },
  {
    file: "api.semanticscholar.org/paper-openaccesspdf-empty.json",
    resolver: "semantic_scholar",
    work: "10.1007/s40278-023-41815-2",
    url: "https://api.semanticscholar.org/graph/v1/paper/DOI:10.1007/s40278-023-41815-2",
    check: finding => assert.ok(finding.kind === "none" && finding.reason === "not-open"),
  },
  {
    file: "api.semanticscholar.org/paper-not-found-404.json",
    resolver: "semantic_scholar",
    work: "10.1007/x",
    url: "https://api.semanticscholar.org/graph/v1/paper/0",
    status: 404,
    check: finding => assert.deepEqual(finding, { kind: "none", reason: "unknown-work" }),
  },
  {
    file: "pmc-oa-opendata.s3.amazonaws.com/list-versions-PMC9984800.xml",
    resolver: "pmc",
    work: "PMC9984800",
    url: "https://pmc-oa-opendata.s3.amazonaws.com/?list-type=2&prefix=PMC9984800.&delimiter=/",
    check: finding =>
      assert.deepEqual(finding, {
        kind: "follow-up",
        request: {
          url: "https://pmc-oa-opendata.s3.amazonaws.com/metadata/PMC9984800.1.json",
          role: "metadata",
        },
      }),
  },
  {
    file: "pmc-oa-opendata.s3.amazonaws.com/metadata-PMC9984800.1.json",
    resolver: "pmc",
    work: "PMC9984800",
    url: "https://pmc-oa-opendata.s3.amazonaws.com/metadata/PMC9984800.1.json",
    check(finding) {
      assert.deepEqual(candidatesOf(finding)[0], {
        url: "https://pmc-oa-opendata.s3.amazonaws.com/PMC9984800.1/PMC9984800.1.pdf",
        kind: "pdf",
        version: "published",
        licence: "CC BY-NC-ND",
        checksum: { algorithm: "md5", hex: "a8f50ddb6afab1d124466f93155631a6" },
      });
      assert.equal(candidatesOf(finding)[1]?.kind, "xml");
      assert.ok(finding.kind === "found" && finding.metadata?.year === 2023);
      assert.deepEqual(finding.ids, {
        pmid: "36842301",
        pmcid: "PMC9984800",
        doi: "10.1016/j.esmoop.2023.100788",
      });
    },
  },
  {
    file: "www.ncbi.nlm.nih.gov/idconv-doi-legacy-ok.json",
    resolver: "pmc",
    work: "10.1038/ng.590",
    url: "https://pmc.ncbi.nlm.nih.gov/tools/idconv/api/v1/articles/?ids=10.1038%2Fng.590",
    check: finding => assert.ok(finding.kind === "follow-up" && finding.request.url.includes("prefix=PMC2883744.&")),
  },
  {
    file: "www.ebi.ac.uk-europepmc/search-core-fulltexturllist-excerpt.json",
    resolver: "europe_pmc",
    work: "10.1002/hpja.70059",
    url: "https://www.ebi.ac.uk/europepmc/webservices/rest/search",
    check(finding) {
      assert.deepEqual(candidatesOf(finding), [
        {
          url: "https://www.ebi.ac.uk/europepmc/webservices/rest/PMC12120539/fullTextXML",
          kind: "xml",
          licence: "cc by-nc-nd",
        },
      ]);
      assert.ok(finding.kind === "found" && finding.ids?.pmcid === "PMC12120539");
    },
  },
  {
    file: "www.ebi.ac.uk-europepmc/search-lite-pmid-20516115.json",
    resolver: "europe_pmc",
    work: "pmid:20516115",
    url: "https://www.ebi.ac.uk/europepmc/webservices/rest/search",
    check: finding =>
      assert.deepEqual(finding, {
        kind: "none",
        reason: "no-copy",
        ids: { pmid: "20516115", pmcid: "PMC3040717", doi: "10.1158/0008-5472.can-09-4563" },
        metadata: {
          pages: "4880-4890",
          title:
            "Comprehensive analysis of missense variations in the BRCT domain of BRCA1 by structural and functional assays",
          year: 2010,
        },
      }),
  },
  {
    file: "zenodo.org/record-5244404-publication.json",
    resolver: "zenodo",
    work: "10.5281/zenodo.5244404",
    url: "https://zenodo.org/api/records/5244404",
    check(finding) {
      assert.deepEqual(candidatesOf(finding)[0], {
        url: "https://zenodo.org/records/5244404/files/Holmes_et_al_(2021)_Cell.pdf",
        kind: "pdf",
        licence: "cc-by-nc-nd-4.0",
        checksum: { algorithm: "md5", hex: "28a4d8215374cda683d236c7ad932ffd" },
        bytes: 1_174_157,
      });
      for (const { url, role } of candidatesOf(finding))
        assert.equal(role === "supplement", url.includes("Supplementary"), url);
    },
  },
  {
    file: "api.osf.io/node-files-list.json",
    resolver: "osf",
    work: "10.17605/osf.io/y8t6r",
    url: "https://api.osf.io/v2/nodes/y8t6r/files/osfstorage/",
    check: finding =>
      assert.deepEqual(candidatesOf(finding), [
        {
          url: "https://test.osf.io/download/bexrz/",
          kind: "pdf",
          checksum: {
            algorithm: "sha256",
            hex: "09de58bd85494bf792e8838b1f77afd11ca43b4746362c8128fcbcdeea80cc49",
          },
          bytes: 7709,
        },
      ]),
  },
  {
    file: "doaj.org/articles-search-2-results.json",
    resolver: "doaj",
    work: "10.1038/s41467-020-15686-y",
    url: "https://doaj.org/api/v4/search/articles/x",
    check: finding =>
      assert.deepEqual(candidatesOf(finding), [
        {
          url: "http://link.springer.com/article/10.1038/s41467-020-15686-y",
          kind: "landing",
          version: "published",
          licence: "CC BY",
        },
      ]),
  },
  {
    file: "web.archive.org/cdx-prefix-filtered.txt",
    resolver: "wayback",
    work: "https://www.nasa.gov/",
    url: "https://web.archive.org/cdx/search/cdx",
    // Six captures, none of them a PDF with status 200.
    check: finding => assert.deepEqual(finding, { kind: "none", reason: "no-copy" }),
  },
  {
    file: "doi.org/doi-not-found-404.html",
    resolver: "landing_page",
    work: "10.1126/foo",
    url: "https://doi.org/10.1126/foo",
    status: 404,
    check: finding => assert.deepEqual(finding, { kind: "none", reason: "unknown-work" }),
  },
];

for (const recording of existsSync(folder) ? recordings : []) {
  test(`${recording.resolver} parses ${recording.file}`, () => recording.check(findingIn(recording)));
}

test("each recording is of a resolver that exists", () => {
  const names = new Set(RESOLVERS.map(({ name }) => name));
  assert.deepEqual(
    recordings.filter(({ resolver }) => !names.has(resolver)),
    [],
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { ask, bodyOf, directory, textOf, workOf } from "../../../test/testing/service-kit.ts";
import { digest } from "./article-file.ts";
import type { SimulatedWork } from "./catalogue.ts";
import type { ServiceName } from "./copy.ts";
import type { SimulatedReply, SimulatedRequest } from "./exchange.ts";
import { makeHostDirectory } from "./host-directory.ts";
import { WORK_SCENARIOS } from "./work-scenarios.ts";

/** Follows redirects: the URLs on the way, and the last response. */
function follow(url: string, earlierRequests = 0): { readonly hops: readonly string[]; readonly end: SimulatedReply } {
  const hops = [url];
  for (;;) {
    const end = ask(hops.at(-1) ?? "", { earlierRequests });
    const { location } = end.headers;
    if (location === undefined || hops.length > 8) return { hops, end };
    hops.push(new URL(location, hops.at(-1)).href);
  }
}

const KEY = { headers: { authorization: "Bearer key" } };

/** For each service: asks it for a work and returns the URLs in the response. */
const LOOKUPS: Partial<Record<ServiceName, (work: SimulatedWork) => readonly string[]>> = {
  crossref: ({ ids }) =>
    bodyOf(ask(`https://api.crossref.org/works/${ids.doi}`)).message.link.map(({ URL }: { URL: string }) => URL),
  openalex: ({ ids }) =>
    bodyOf(ask(`https://api.openalex.org/works/doi:${ids.doi}`)).locations.map(
      (each: { pdf_url: string; landing_page_url: string }) => each.pdf_url ?? each.landing_page_url,
    ),
  unpaywall: ({ ids }) =>
    bodyOf(ask(`https://api.unpaywall.org/v2/${ids.doi}?email=me@example.org`)).oa_locations.map(
      ({ url }: { url: string }) => url,
    ),
  arxiv: ({ ids }) => [
    /href="([^"]+)v1" rel="related"/.exec(
      textOf(ask(`https://export.arxiv.org/api/query?id_list=${ids.arxiv}`)),
    )?.[1] ?? "",
  ],
  pmc: ({ ids }) => {
    const { records } = bodyOf(
      ask(`https://pmc.ncbi.nlm.nih.gov/tools/idconv/api/v1/articles/?ids=${ids.doi}&format=json`),
    );
    const key = records[0].versions[0].pmcid;
    const bucket = "https://pmc-oa-opendata.s3.amazonaws.com";
    assert.match(
      textOf(ask(`${bucket}/?list-type=2&prefix=${records[0].pmcid}.&delimiter=/`)),
      new RegExp(`<Prefix>${key}/`),
    );
    const { pdf_url } = bodyOf(ask(`${bucket}/metadata/${key}.json`));
    return [pdf_url.replace("s3://pmc-oa-opendata", bucket).replace(/\?md5=.*/, "")];
  },
  europe_pmc: ({ ids }) =>
    bodyOf(
      ask(`https://www.ebi.ac.uk/europepmc/webservices/rest/search?query=DOI:"${ids.doi}"&resultType=core&format=json`),
    ).resultList.result[0].fullTextUrlList.fullTextUrl.map(({ url }: { url: string }) => url),
  semantic_scholar: ({ ids }) => [
    bodyOf(ask(`https://api.semanticscholar.org/graph/v1/paper/DOI:${ids.doi}?fields=openAccessPdf`)).openAccessPdf.url,
  ],
  doaj: ({ ids }) =>
    bodyOf(
      ask(`https://doaj.org/api/v4/search/articles/doi:${encodeURIComponent(ids.doi ?? "")}`),
    ).results[0].bibjson.link.map(({ url }: { url: string }) => url),
  zenodo: ({ ids }) =>
    bodyOf(ask(`https://zenodo.org/api/records/${ids.doi?.split(".").at(-1)}`)).files.map(
      ({ links }: { links: { self: string } }) => links.self,
    ),
  figshare: ({ ids }) => {
    const [{ id }] = bodyOf(ask(`https://api.figshare.com/v2/articles?doi=${ids.doi}`));
    const { files } = bodyOf(ask(`https://api.figshare.com/v2/articles/${id}`));
    return [`https://api.figshare.com/v2/file/download/${files[0].id}`];
  },
  osf: ({ ids }) => {
    const guid = ids.doi?.split("/").at(-1);
    const { data } = bodyOf(ask(`https://api.osf.io/v2/preprints/${guid}/`));
    const { href } = data.relationships.primary_file.links.related;
    return [bodyOf(ask(href)).data.links.download];
  },
  core: ({ ids }) =>
    bodyOf(ask(`https://api.core.ac.uk/v3/search/works?q=doi:"${ids.doi}"&limit=5`, KEY)).results[0].sourceFulltextUrls,
  openaire: ({ ids }) =>
    bodyOf(ask(`https://api.openaire.eu/graph/v2/researchProducts?pid=${ids.doi}`)).results[0].instances.flatMap(
      ({ urls }: { urls: string[] }) => urls,
    ),
  hal: ({ ids }) =>
    bodyOf(ask(`https://api.archives-ouvertes.fr/search/?q=doiId_s:"${ids.doi}"&fl=files_s,fileMain_s&wt=json`))
      .response.docs[0].files_s,
  biorxiv: ({ ids }) => {
    const { collection } = bodyOf(ask(`https://api.biorxiv.org/details/biorxiv/${ids.doi}/na/json`));
    return [`https://www.biorxiv.org/content/${collection[0].doi}v${collection[0].version}.full.pdf`];
  },
  landing_page: ({ ids }) => {
    const { end } = follow(`https://doi.org/${ids.doi}`);
    const named = `${end.headers["link"] ?? ""} ${textOf(end)}`;
    return [...named.matchAll(/https:\/\/[^"<>\s]+(?:\/pdf|\.full\.pdf)/g)].map(([url]) => url);
  },
  wayback: ({ copies }) => {
    const lost = copies[0]?.url ?? "";
    const filters = "output=json&filter=statuscode:200&filter=mimetype:application/pdf&limit=-1&fl=timestamp,original";
    const rows = bodyOf(ask(`https://web.archive.org/cdx/search/cdx?url=${encodeURIComponent(lost)}&${filters}`));
    return rows
      .slice(1)
      .map(([timestamp, original]: string[]) => `https://web.archive.org/web/${timestamp}id_/${original}`);
  },
};

for (const [service, lookUp] of Object.entries(LOOKUPS)) {
  test(`${service} returns every copy that the catalogue assigns to it`, () => {
    const copies = directory.works.flatMap(work =>
      work.copies.filter(({ via }) => via.includes(service as ServiceName)).map(copy => ({ work, copy })),
    );
    assert.ok(copies.length > 0);
    for (const { work, copy } of copies) assert.ok(lookUp(work).includes(copy.url), `${copy.url} of ${work.scenario}`);
  });
}

test("every service of the catalogue has a lookup in this test", () => {
  const named = new Set(directory.works.flatMap(({ copies }) => copies.flatMap(({ via }) => via)));
  assert.deepEqual([...named].sort(), Object.keys(LOOKUPS).sort());
});

test("the URL of every good copy returns the file, and that of a bad copy something else or a wrong checksum", () => {
  for (const { copies, file, scenario } of directory.works) {
    for (const { url, isGood } of copies) {
      const { end } = follow(url, 1);
      const isFile = end.body instanceof Uint8Array && digest("sha256", end.body) === file.sha256;
      assert.equal(isFile && end.status === 200, isGood || scenario === "wrong-checksum", `${scenario}: ${url}`);
    }
  }
});

test("every scenario occurs, some works have no file, and DOIs are unique", () => {
  assert.deepEqual(
    new Set(directory.works.map(({ scenario }) => scenario)),
    new Set(WORK_SCENARIOS.map(({ scenario }) => scenario)),
  );
  assert.ok(directory.works.filter(({ expects }) => expects === "none").length >= 5);
  const dois = directory.works.map(({ ids }) => ids.doi);
  assert.equal(new Set(dois).size, dois.length);
});

test("the same seed makes the same internet, another seed another one", () => {
  const facts = (seed: number) =>
    JSON.stringify(makeHostDirectory({ seed, works: 40, bigOntologyBytes: 20_000 }).works);
  assert.equal(facts(7), facts(7));
  assert.notEqual(facts(7), facts(8));
});

test("a copy with truncated-once is truncated on the first request and complete on the second", () => {
  const { copies, file } = workOf("truncated-once");
  const url = copies[0]?.url ?? "";
  assert.equal(ask(url).cutAtBytes, Math.floor(file.bytes / 2));
  assert.equal(ask(url, { earlierRequests: 1 }).cutAtBytes, undefined);
});

test("the redirect chain crosses hosts and schemes", () => {
  const { hops, end } = follow(workOf("redirect-chain").copies[0]?.url ?? "");
  assert.deepEqual([end.status, new Set(hops.map(hop => new URL(hop).host)).size], [200, 3]);
  assert.ok(hops.some(hop => hop.startsWith("http:")));
});

test("viewer pages, challenges and cookie loops look like real ones", () => {
  const viewer = ask(workOf("html-instead").copies[0]?.url ?? "");
  assert.deepEqual([viewer.status, viewer.headers["content-type"]], [200, "application/pdf"]);
  assert.match(textOf(viewer), /^<!doctype html>/);
  const challenge = ask(workOf("challenge").copies[0]?.url ?? "");
  assert.deepEqual([challenge.status, challenge.headers["cf-mitigated"]], [403, "challenge"]);
  const { hops } = follow(workOf("cookie-loop").copies[0]?.url ?? "");
  assert.equal(hops.length, 9);
});

test("a record with wrong-checksum has another checksum than the file that both of its URLs return", () => {
  const { record, file } = workOf("wrong-checksum");
  const [paper] = bodyOf(ask(`https://zenodo.org/api/records/${record}`)).files;
  assert.notEqual(paper.checksum, `md5:${file.md5}`);
  for (const url of [paper.links.self, `https://zenodo.org/records/${record}/files/paper.pdf`]) {
    const { status, body } = ask(url);
    assert.ok(status === 200 && body instanceof Uint8Array && digest("md5", body) === file.md5, url);
  }
  assert.equal(ask(`https://zenodo.org/records/${record}`).status, 404);
});

test("both URLs of the table in a record of Zenodo return the table with its checksum", () => {
  const { record } = workOf("zenodo");
  const [, table] = bodyOf(ask(`https://zenodo.org/api/records/${record}`)).files;
  for (const url of [table.links.self, `https://zenodo.org/records/${record}/files/table.csv`])
    assert.equal(`md5:${digest("md5", textOf(ask(url)))}`, table.checksum, url);
});

test("a missing work gets the error response of each service", () => {
  const doi = "10.5555/nothing";
  const of = (url: string, more?: Partial<SimulatedRequest>) => ask(url, more);
  assert.equal(textOf(of(`https://api.crossref.org/works/${doi}`)), "Resource not found.");
  assert.match(of(`https://api.openalex.org/works/doi:${doi}`).headers["content-type"] ?? "", /html/);
  assert.equal(bodyOf(of(`https://api.unpaywall.org/v2/${doi}?email=me@example.org`)).HTTP_status_code, 404);
  assert.match(textOf(of("https://export.arxiv.org/api/query?id_list=0000.0000")), /totalResults>0</);
  assert.match(textOf(of("https://export.arxiv.org/api/query?id_list=nonsense")), /api\/errors#/);
  assert.equal(
    bodyOf(of(`https://api.semanticscholar.org/graph/v1/paper/DOI:${doi}`)).error,
    `Paper with id DOI:${doi} not found`,
  );
  assert.match(textOf(of("https://pmc-oa-opendata.s3.amazonaws.com/metadata/PMC1.1.json")), /<Code>NoSuchKey</);
  assert.equal(bodyOf(of(`https://doaj.org/api/v4/search/articles/doi:${doi}`)).total, 0);
  assert.equal(bodyOf(of("https://zenodo.org/api/records/1")).status, 404);
  assert.deepEqual(bodyOf(of(`https://api.figshare.com/v2/articles?doi=${doi}`)), []);
  assert.equal(of("https://api.osf.io/v2/preprints/zzzzz/").status, 404);
  assert.equal(bodyOf(of(`https://api.core.ac.uk/v3/search/works?q=doi:"${doi}"`, KEY)).totalHits, 0);
  assert.equal(bodyOf(of(`https://api.openaire.eu/graph/v2/researchProducts?pid=${doi}`)).header.numFound, 0);
  assert.equal(bodyOf(of(`https://api.archives-ouvertes.fr/search/?q=doiId_s:"${doi}"`)).response.numFound, 0);
  assert.deepEqual(bodyOf(of(`https://api.biorxiv.org/details/biorxiv/${doi}/na/json`)).collection, []);
  assert.deepEqual(bodyOf(of(`https://web.archive.org/cdx/search/cdx?url=x.example&output=json`)), []);
  assert.deepEqual(bodyOf(of(`https://archive.org/wayback/available?url=x.example`)).archived_snapshots, {});
  assert.equal(of(`https://doi.org/${doi}`).status, 404);
  assert.equal(of("https://doi.org/nonsense").status, 400);
});

test("requests without key, email address or valid parameters are refused as by the real services", () => {
  const { doi } = workOf("publisher").ids;
  assert.equal(ask(`https://api.unpaywall.org/v2/${doi}`).status, 422);
  assert.equal(ask(`https://api.unpaywall.org/v2/${doi}?email=me@example.com`).status, 422);
  assert.equal(
    ask(`https://doaj.org/api/v4/search/articles/doi:${doi}`, { headers: { "user-agent": "a robot" } }).status,
    403,
  );
  assert.equal(ask(`https://api.core.ac.uk/v3/search/works?q=doi:"${doi}"`).status, 500);
  assert.equal(ask(`https://api.openaire.eu/graph/v2/researchProducts?doi=${doi}`).status, 400);
  assert.equal(ask(`https://api.semanticscholar.org/graph/v1/paper/DOI:${doi}?fields=nonsense`).status, 400);
  assert.equal(ask("https://api.openalex.org/works?filter=nonsense:1").status, 403);
  assert.equal(ask("https://content.openalex.org/works/W1.pdf").status, 401);
});

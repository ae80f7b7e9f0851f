import { z } from "zod";
import { withoutVersion } from "../identifiers/arxiv-id.ts";
import { kindByUrl } from "../identifiers/web-url.ts";
import type { Work, WorkIds } from "../work.ts";
import { findingForBatchStatus } from "./batch-findings.ts";
import { findingForStatus, findingOf, idsFrom } from "./finding.ts";
import { lenientText, lenientYear, listOf, optionalListOf, optionalText, readJson } from "./json-response.ts";
import { encodedPath, urlWithQuery } from "./request-url.ts";
import type { Finding, Resolver } from "./resolver.ts";

const paper = z.object({
  paperId: z.string(),
  title: lenientText,
  year: lenientYear,
  venue: lenientText,
  authors: optionalListOf(z.object({ name: lenientText })).catch([]),
  isOpenAccess: z.boolean().nullish(),
  openAccessPdf: z.object({ url: optionalText, license: lenientText }).nullish(),
  externalIds: z
    .object({ DOI: lenientText, ArXiv: lenientText, PubMed: lenientText, PubMedCentral: lenientText })
    .nullish()
    .catch(undefined),
});

/** 500 are allowed; the response for so many would be large. */
const BATCH_MAX = 100;
const papers = listOf(paper.nullable(), BATCH_MAX);
const PAPER = "https://api.semanticscholar.org/graph/v1/paper";
const FIELDS = "title,year,venue,authors,isOpenAccess,openAccessPdf,externalIds";

/** Requires a key: all clients without one share a rate limit, which is mostly used up (2026). */
export const semanticScholar: Resolver = {
  name: "semantic_scholar",
  needs: ["SEMANTIC_SCHOLAR_API_KEY"],
  requestFor({ ids }) {
    const name = nameOf(ids);
    if (name === undefined) return undefined;
    return { url: urlWithQuery(`${PAPER}/${name}`, { fields: FIELDS }), role: "metadata" };
  },
  parse(response, work) {
    const statusFinding = findingForStatus(response, "service");
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, paper);
    return "failure" in parsed ? parsed.failure : findingIn(parsed.data, work);
  },
  batch: {
    maxWorks: BATCH_MAX,
    groupOf: ({ ids }) => (nameOf(ids) === undefined ? undefined : "any"),
    requestFor: works => ({
      url: urlWithQuery(`${PAPER}/batch`, { fields: FIELDS }),
      role: "metadata",
      body: JSON.stringify({ ids: works.map(({ ids }) => decodeURIComponent(nameOf(ids) ?? "")) }),
    }),
    parse(response, works) {
      const statusFinding = findingForBatchStatus(response, "service");
      if (statusFinding !== undefined) return statusFinding;
      const parsed = readJson(response, papers);
      if ("failure" in parsed) return parsed.failure;
      const { data } = parsed;
      return works.map((work, index) => {
        const found = data[index];
        return found ? findingIn(found, work) : { kind: "none", reason: "unknown-work" };
      });
    },
  },
};

function findingIn({ openAccessPdf: copy, externalIds, ...found }: z.infer<typeof paper>, work: Work): Finding {
  // `openAccessPdf` is often a landing page, such as https://doi.org/….
  return findingOf(work, [{ url: copy?.url, kind: kindByUrl(copy?.url ?? ""), licence: copy?.license }], {
    noneReason: found.isOpenAccess === false ? "not-open" : "no-copy",
    ids: idsFrom({
      doi: externalIds?.DOI,
      arxiv: externalIds?.ArXiv,
      pmid: externalIds?.PubMed,
      pmcid: externalIds?.PubMedCentral?.replace(/^(?=\d)/, "PMC"),
    }),
    metadata: { title: found.title, year: found.year, venue: found.venue, authors: found.authors },
  });
}

function nameOf({ doi, arxiv, pmid, pmcid }: WorkIds): string | undefined {
  if (doi !== undefined) return `DOI:${encodedPath(doi)}`;
  if (arxiv !== undefined) return `ARXIV:${encodedPath(withoutVersion(arxiv))}`;
  if (pmid !== undefined) return `PMID:${pmid}`;
  return pmcid === undefined ? undefined : `PMCID:${pmcid.replace(/^PMC/, "")}`;
}

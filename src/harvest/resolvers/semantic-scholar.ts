import { z } from "zod";
import { withoutVersion } from "../identifiers/arxiv-id.ts";
import { kindByAddress } from "../identifiers/web-url.ts";
import type { WorkIds } from "../work.ts";
import { findingOf, idsFrom, verdictOf } from "./finding.ts";
import { aside, readJson, text, yearAside } from "./json-response.ts";
import { address, inPath } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const paper = z.object({
  paperId: z.string(),
  title: aside,
  year: yearAside,
  isOpenAccess: z.boolean().nullish(),
  openAccessPdf: z.object({ url: text, license: aside }).nullish(),
  externalIds: z.object({ DOI: aside, ArXiv: aside, PubMed: aside, PubMedCentral: aside }).nullish().catch(undefined),
});

/** Without a key everybody shares one pool, which in 2026 is mostly spent: so the key is called indispensable. */
export const semanticScholar: Resolver = {
  name: "semantic_scholar",
  needs: ["SEMANTIC_SCHOLAR_API_KEY"],
  ask({ ids }) {
    const name = nameOf(ids);
    if (name === undefined) return undefined;
    const fields = "title,year,isOpenAccess,openAccessPdf,externalIds";
    return { url: address(`https://api.semanticscholar.org/graph/v1/paper/${name}`, { fields }), role: "metadata" };
  },
  read(answer, work) {
    const verdict = verdictOf(answer);
    if (verdict !== undefined) return verdict;
    const read = readJson(answer, paper);
    if ("trouble" in read) return read.trouble;
    const { openAccessPdf: copy, externalIds, title, year, isOpenAccess } = read.data;
    // Called a PDF, and often the page of one: https://doi.org/….
    return findingOf(work, [{ url: copy?.url, kind: kindByAddress(copy?.url ?? ""), licence: copy?.license }], {
      otherwise: isOpenAccess === false ? "not-open" : "no-copy",
      ids: idsFrom({
        doi: externalIds?.DOI,
        arxiv: externalIds?.ArXiv,
        pmid: externalIds?.PubMed,
        pmcid: externalIds?.PubMedCentral?.replace(/^(?=\d)/, "PMC"),
      }),
      title,
      year,
    });
  },
};

function nameOf({ doi, arxiv, pmid, pmcid }: WorkIds): string | undefined {
  if (doi !== undefined) return `DOI:${inPath(doi)}`;
  if (arxiv !== undefined) return `ARXIV:${inPath(withoutVersion(arxiv))}`;
  if (pmid !== undefined) return `PMID:${pmid}`;
  return pmcid === undefined ? undefined : `PMCID:${pmcid.replace(/^PMC/, "")}`;
}

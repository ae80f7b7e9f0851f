import { z } from "zod";
import { withoutVersion } from "../identifiers/arxiv-id.ts";
import { kindByUrl } from "../identifiers/web-url.ts";
import type { WorkIds } from "../work.ts";
import { findingForStatus, findingOf, idsFrom } from "./finding.ts";
import { lenientText, lenientYear, optionalText, readJson } from "./json-response.ts";
import { encodedPath, urlWithQuery } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const paper = z.object({
  paperId: z.string(),
  title: lenientText,
  year: lenientYear,
  isOpenAccess: z.boolean().nullish(),
  openAccessPdf: z.object({ url: optionalText, license: lenientText }).nullish(),
  externalIds: z
    .object({ DOI: lenientText, ArXiv: lenientText, PubMed: lenientText, PubMedCentral: lenientText })
    .nullish()
    .catch(undefined),
});

/** Requires a key: all clients without one share a rate limit, which is mostly used up (2026). */
export const semanticScholar: Resolver = {
  name: "semantic_scholar",
  needs: ["SEMANTIC_SCHOLAR_API_KEY"],
  requestFor({ ids }) {
    const name = nameOf(ids);
    if (name === undefined) return undefined;
    const fields = "title,year,isOpenAccess,openAccessPdf,externalIds";
    return {
      url: urlWithQuery(`https://api.semanticscholar.org/graph/v1/paper/${name}`, { fields }),
      role: "metadata",
    };
  },
  parse(response, work) {
    const statusFinding = findingForStatus(response);
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, paper);
    if ("failure" in parsed) return parsed.failure;
    const { openAccessPdf: copy, externalIds, title, year, isOpenAccess } = parsed.data;
    // `openAccessPdf` is often a landing page, such as https://doi.org/….
    return findingOf(work, [{ url: copy?.url, kind: kindByUrl(copy?.url ?? ""), licence: copy?.license }], {
      noneReason: isOpenAccess === false ? "not-open" : "no-copy",
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
  if (doi !== undefined) return `DOI:${encodedPath(doi)}`;
  if (arxiv !== undefined) return `ARXIV:${encodedPath(withoutVersion(arxiv))}`;
  if (pmid !== undefined) return `PMID:${pmid}`;
  return pmcid === undefined ? undefined : `PMCID:${pmcid.replace(/^PMC/, "")}`;
}

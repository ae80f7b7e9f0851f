import { z } from "zod";
import type { Work, WorkIds } from "../work.ts";
import { findingForStatus, findingOf, idsFrom, matchesDoi, type RawCandidate } from "./finding.ts";
import { lenientText, lenientYear, listOf, optionalListOf, optionalText, readJson } from "./json-response.ts";
import { quotedPhrase, urlWithQuery } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const REST = "https://www.ebi.ac.uk/europepmc/webservices/rest";

const result = z.object({
  doi: optionalText,
  pmid: optionalText,
  pmcid: optionalText,
  title: lenientText,
  pubYear: lenientYear,
  isOpenAccess: lenientText,
  license: lenientText,
  fullTextUrlList: z
    .object({
      fullTextUrl: optionalListOf(
        z.object({ availabilityCode: lenientText, documentStyle: lenientText, url: optionalText }),
      ),
    })
    .nullish(),
});
const page = z.object({ resultList: z.object({ result: listOf(result, 25) }) });

export const europePmc: Resolver = {
  name: "europe_pmc",
  needs: [],
  requestFor({ ids }) {
    const query = queryFor(ids);
    if (query === undefined) return undefined;
    const parameters = { query, resultType: "core", format: "json", pageSize: "5" };
    return { url: urlWithQuery(`${REST}/search`, parameters), role: "metadata" };
  },
  parse(response, work) {
    const statusFinding = findingForStatus(response);
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, page);
    if ("failure" in parsed) return parsed.failure;
    const hit = parsed.data.resultList.result.find(each => isOf(each, work));
    if (hit === undefined) return { kind: "none", reason: "unknown-work" };
    return findingOf(work, rawCandidatesOf(hit), {
      noneReason: "no-copy",
      ids: idsFrom(hit),
      title: hit.title,
      year: hit.pubYear,
    });
  },
};

function queryFor({ pmcid, pmid, doi }: WorkIds): string | undefined {
  if (pmcid !== undefined) return `PMCID:${pmcid}`;
  if (pmid !== undefined) return `EXT_ID:${pmid} AND SRC:MED`;
  return doi === undefined ? undefined : `DOI:${quotedPhrase(doi)}`;
}

/** Searches also return similar records. */
function isOf(each: z.infer<typeof result>, work: Work): boolean {
  const { pmcid, pmid } = idsFrom({ pmcid: each.pmcid, pmid: each.pmid });
  const isSame = (one: string | undefined, other: string | undefined) => one !== undefined && one === other;
  return isSame(pmcid, work.ids.pmcid) || isSame(pmid, work.ids.pmid) || matchesDoi(work, each.doi);
}

function rawCandidatesOf({
  pmcid,
  isOpenAccess,
  license,
  fullTextUrlList,
}: z.infer<typeof result>): readonly RawCandidate[] {
  const { pmcid: id } = idsFrom({ pmcid });
  const xml: readonly RawCandidate[] =
    id !== undefined && isOpenAccess === "Y"
      ? [{ url: `${REST}/${id}/fullTextXML`, kind: "xml", licence: license }]
      : [];
  const open = fullTextUrlList?.fullTextUrl.filter(each => /^(?:OA|F)$/.test(each.availabilityCode ?? "")) ?? [];
  return [
    ...xml,
    ...open.map(
      (each): RawCandidate => ({
        url: each.url,
        kind: each.documentStyle === "pdf" ? "pdf" : "landing",
        licence: license,
      }),
    ),
  ];
}

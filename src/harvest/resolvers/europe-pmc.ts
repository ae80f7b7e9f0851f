import { z } from "zod";
import type { Work, WorkIds } from "../work.ts";
import { findingOf, idsFrom, isDoiOf, type Place, verdictOf } from "./finding.ts";
import { anyOf, aside, listOf, readJson, text, yearAside } from "./json-response.ts";
import { address, phrase } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const REST = "https://www.ebi.ac.uk/europepmc/webservices/rest";

const result = z.object({
  doi: text,
  pmid: text,
  pmcid: text,
  title: aside,
  pubYear: yearAside,
  isOpenAccess: aside,
  license: aside,
  fullTextUrlList: z
    .object({ fullTextUrl: anyOf(z.object({ availabilityCode: aside, documentStyle: aside, url: text })) })
    .nullish(),
});
const page = z.object({ resultList: z.object({ result: listOf(result, 25) }) });

export const europePmc: Resolver = {
  name: "europe_pmc",
  needs: [],
  ask({ ids }) {
    const query = queryFor(ids);
    if (query === undefined) return undefined;
    const asked = { query, resultType: "core", format: "json", pageSize: "5" };
    return { url: address(`${REST}/search`, asked), role: "metadata" };
  },
  read(answer, work) {
    const verdict = verdictOf(answer);
    if (verdict !== undefined) return verdict;
    const read = readJson(answer, page);
    if ("trouble" in read) return read.trouble;
    const hit = read.data.resultList.result.find(each => isOf(each, work));
    if (hit === undefined) return { kind: "none", reason: "unknown-work" };
    return findingOf(work, placesOf(hit), {
      otherwise: "no-copy",
      ids: idsFrom(hit),
      title: hit.title,
      year: hit.pubYear,
    });
  },
};

function queryFor({ pmcid, pmid, doi }: WorkIds): string | undefined {
  if (pmcid !== undefined) return `PMCID:${pmcid}`;
  if (pmid !== undefined) return `EXT_ID:${pmid} AND SRC:MED`;
  return doi === undefined ? undefined : `DOI:${phrase(doi)}`;
}

/** Searches find what resembles the words, too. */
function isOf(each: z.infer<typeof result>, work: Work): boolean {
  const { pmcid, pmid } = idsFrom({ pmcid: each.pmcid, pmid: each.pmid });
  const isSame = (one: string | undefined, other: string | undefined) => one !== undefined && one === other;
  return isSame(pmcid, work.ids.pmcid) || isSame(pmid, work.ids.pmid) || isDoiOf(work, each.doi);
}

function placesOf({ pmcid, isOpenAccess, license, fullTextUrlList }: z.infer<typeof result>): readonly Place[] {
  const { pmcid: id } = idsFrom({ pmcid });
  const xml: readonly Place[] =
    id !== undefined && isOpenAccess === "Y"
      ? [{ url: `${REST}/${id}/fullTextXML`, kind: "xml", licence: license }]
      : [];
  const open = fullTextUrlList?.fullTextUrl.filter(each => /^(?:OA|F)$/.test(each.availabilityCode ?? "")) ?? [];
  return [
    ...xml,
    ...open.map(
      (each): Place => ({
        url: each.url,
        kind: each.documentStyle === "pdf" ? "pdf" : "landing",
        licence: license,
      }),
    ),
  ];
}

import { z } from "zod";
import type { Work, WorkIds } from "../work.ts";
import { findingForBatchStatus, foundBy, isPlainDoi } from "./batch-findings.ts";
import { findingForStatus, findingOf, idsFrom, matchesDoi, type RawCandidate } from "./finding.ts";
import { lenientText, lenientYear, listOf, optionalListOf, optionalText, readJson } from "./json-response.ts";
import { quotedPhrase, urlWithQuery } from "./request-url.ts";
import type { Finding, Resolver, ResolverRequest, ResolverResponse } from "./resolver.ts";

const REST = "https://www.ebi.ac.uk/europepmc/webservices/rest";

const result = z.object({
  doi: optionalText,
  pmid: optionalText,
  pmcid: optionalText,
  title: lenientText,
  pubYear: lenientYear,
  isOpenAccess: lenientText,
  license: lenientText,
  pageInfo: lenientText,
  authorList: z
    .object({
      author: optionalListOf(
        z.object({ firstName: lenientText, lastName: lenientText, collectiveName: lenientText, fullName: lenientText }),
      ),
    })
    .nullish()
    .catch(undefined),
  journalInfo: z
    .object({
      volume: lenientText,
      issue: lenientText,
      journal: z.object({ title: lenientText }).nullish().catch(undefined),
    })
    .nullish()
    .catch(undefined),
  fullTextUrlList: z
    .object({
      fullTextUrl: optionalListOf(
        z.object({ availabilityCode: lenientText, documentStyle: lenientText, url: optionalText }),
      ),
    })
    .nullish(),
});
/** A complete record has up to 50 kB, with abstract and references. */
const BATCH_MAX = 40;
const page = z.object({ resultList: z.object({ result: listOf(result, 2 * BATCH_MAX) }) });

export const europePmc: Resolver = {
  name: "europe_pmc",
  needs: [],
  offers: ["xml"],
  requestFor({ ids }) {
    const query = queryFor(ids);
    return query === undefined ? undefined : searchRequest(query, 5);
  },
  parse(response, work) {
    const found = findingForStatus(response, "service") ?? resultsIn(response);
    if (!Array.isArray(found)) return found;
    const hit = found.find(each => matchesWork(each, work));
    return hit === undefined ? { kind: "none", reason: "unknown-work" } : findingIn(hit, work);
  },
  batch: {
    maxWorks: BATCH_MAX,
    groupOf: ({ ids }) =>
      ids.pmcid !== undefined || ids.pmid !== undefined || isPlainDoi(ids.doi ?? "") ? "any" : undefined,
    requestFor: works =>
      searchRequest(works.map(({ ids }) => `(${queryFor(ids)})`).join(" OR "), 2 * BATCH_MAX, RESPONSE_BYTES_MAX),
    parse(response, works) {
      const found = findingForBatchStatus(response, "service") ?? resultsIn(response, RESPONSE_BYTES_MAX);
      return Array.isArray(found) ? foundBy(works, found, idsFrom, findingIn) : found;
    },
  },
};

const RESPONSE_BYTES_MAX = 8 * 2 ** 20;

function searchRequest(query: string, pageSize: number, maxBytes?: number): ResolverRequest {
  const parameters = { query, resultType: "core", format: "json", pageSize: String(pageSize) };
  return { url: urlWithQuery(`${REST}/search`, parameters), role: "metadata", ...(maxBytes && { maxBytes }) };
}

function resultsIn(response: ResolverResponse, maxChars?: number): z.infer<typeof result>[] | Finding {
  const parsed = readJson(response, page, maxChars);
  return "failure" in parsed ? parsed.failure : parsed.data.resultList.result;
}

function findingIn(hit: z.infer<typeof result>, work: Work): Finding {
  return findingOf(work, rawCandidatesOf(hit), {
    noneReason: "no-copy",
    ids: idsFrom(hit),
    metadata: {
      title: hit.title?.replace(/\.$/, ""),
      year: hit.pubYear,
      authors: hit.authorList?.author.map(({ firstName, lastName, collectiveName, fullName }) => ({
        family: lastName,
        given: firstName,
        name: collectiveName ?? fullName,
      })),
      venue: hit.journalInfo?.journal?.title,
      volume: hit.journalInfo?.volume,
      issue: hit.journalInfo?.issue,
      pages: hit.pageInfo,
      licence: hit.license,
    },
  });
}

function queryFor({ pmcid, pmid, doi }: WorkIds): string | undefined {
  if (pmcid !== undefined) return `PMCID:${pmcid}`;
  if (pmid !== undefined) return `EXT_ID:${pmid} AND SRC:MED`;
  return doi === undefined ? undefined : `DOI:${quotedPhrase(doi)}`;
}

/** Searches also return similar records. */
function matchesWork(each: z.infer<typeof result>, work: Work): boolean {
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

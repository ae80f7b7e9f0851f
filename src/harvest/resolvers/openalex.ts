import { z } from "zod";
import { doiOfArxivId } from "../identifiers/arxiv-id.ts";
import { openalexOf } from "../identifiers/identifiers.ts";
import { kindByUrl } from "../identifiers/web-url.ts";
import type { Work, WorkIds } from "../work.ts";
import { findingForBatchStatus, foundBy, isPlainDoi } from "./batch-findings.ts";
import { findingForStatus, findingOf, idsFrom, type RawCandidate, versionOf } from "./finding.ts";
import { lenientText, lenientYear, listOf, optionalListOf, optionalText, readJson } from "./json-response.ts";
import { encodedPath, urlWithQuery } from "./request-url.ts";
import type { Finding, Resolver } from "./resolver.ts";

const location = z.object({
  is_oa: z.boolean().nullish(),
  pdf_url: optionalText,
  landing_page_url: optionalText,
  license: lenientText,
  version: lenientText,
});

const work = z.object({
  id: optionalText,
  doi: optionalText,
  title: lenientText,
  publication_year: lenientYear,
  ids: z.object({ pmid: optionalText, pmcid: optionalText }).nullish(),
  type: lenientText,
  is_retracted: z.boolean().nullish().catch(undefined),
  authorships: optionalListOf(z.object({ author: z.object({ display_name: lenientText }).nullish() })).catch([]),
  primary_location: z
    .object({ source: z.object({ display_name: lenientText }).nullish() })
    .nullish()
    .catch(undefined),
  open_access: z.object({ is_oa: z.boolean().nullish(), oa_status: lenientText, oa_url: optionalText }),
  best_oa_location: location.nullish(),
  locations: optionalListOf(location),
});

const FIELDS =
  "id,doi,title,publication_year,ids,type,is_retracted,authorships,primary_location,open_access,best_oa_location,locations";
/** OpenAlex accepts 50 alternatives in a filter. */
const BATCH_MAX = 50;
const page = z.object({ results: listOf(work, 2 * BATCH_MAX) });

/** Copies that OpenAlex itself hosts (`content_urls`) are not used: each download costs money. */
export const openalex: Resolver = {
  name: "openalex",
  needs: [],
  requestFor({ ids }) {
    const name = nameOf(ids);
    return name === undefined
      ? undefined
      : { url: urlWithQuery(`https://api.openalex.org/works/${name}`, { select: FIELDS }), role: "metadata" };
  },
  parse(response, about) {
    const statusFinding = findingForStatus(response, "service");
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, work);
    return "failure" in parsed ? parsed.failure : findingIn(parsed.data, about);
  },
  batch: {
    maxWorks: BATCH_MAX,
    groupOf: ({ ids }) => batchNameOf(ids)?.group,
    requestFor(works) {
      const names = works.flatMap(({ ids }) => batchNameOf(ids) ?? []);
      const filter = `${names[0]?.group}:${names.map(({ name }) => name).join("|")}`;
      const query = { filter, select: FIELDS, per_page: String(2 * BATCH_MAX) };
      return { url: urlWithQuery("https://api.openalex.org/works", query), role: "metadata" };
    },
    parse(response, works) {
      const statusFinding = findingForBatchStatus(response, "service");
      if (statusFinding !== undefined) return statusFinding;
      const parsed = readJson(response, page);
      if ("failure" in parsed) return parsed.failure;
      return foundBy(works, parsed.data.results, idsIn, findingIn);
    },
  },
};

function findingIn(data: z.infer<typeof work>, about: Work): Finding {
  const openLocations = [data.best_oa_location, ...data.locations.filter(each => each.is_oa === true)];
  const { oa_url: oaUrl, oa_status: openAccess, is_oa: isOpen } = data.open_access;
  return findingOf(
    about,
    [
      ...openLocations.flatMap(each => (each ? rawCandidatesOf(each) : [])),
      { url: oaUrl, kind: kindByUrl(oaUrl ?? "") },
    ],
    {
      noneReason: isOpen === false ? "not-open" : "no-copy",
      ids: idsIn(data),
      metadata: {
        title: data.title,
        year: data.publication_year,
        authors: data.authorships.map(({ author }) => ({ name: author?.display_name })),
        venue: data.primary_location?.source?.display_name,
        type: data.type,
        licence: data.best_oa_location?.license,
        openAccess,
        isRetracted: data.is_retracted,
      },
    },
  );
}

function idsIn({ id, doi, ids }: z.infer<typeof work>): WorkIds {
  return { ...idsFrom({ doi, pmid: tail(ids?.pmid), pmcid: pmcidIn(ids?.pmcid) }), ...openalexIds(id) };
}

/** Undefined for names with characters that the filter uses itself. */
function batchNameOf({ openalex: id, doi, arxiv, pmid }: WorkIds): { group: string; name: string } | undefined {
  if (id !== undefined) return { group: "openalex", name: id };
  const name = doi ?? (arxiv && doiOfArxivId(arxiv));
  if (name !== undefined) return isPlainDoi(name) ? { group: "doi", name } : undefined;
  return pmid === undefined ? undefined : { group: "pmid", name: pmid };
}

function nameOf({ openalex, doi, arxiv, pmid, pmcid }: WorkIds): string | undefined {
  if (openalex !== undefined) return openalex;
  if (doi !== undefined) return `doi:${encodedPath(doi)}`;
  if (arxiv !== undefined) return `doi:${encodedPath(doiOfArxivId(arxiv))}`;
  if (pmid !== undefined) return `pmid:${pmid}`;
  return pmcid === undefined ? undefined : `pmcid:${pmcid}`;
}

function rawCandidatesOf({
  pdf_url,
  landing_page_url,
  license,
  version,
}: z.infer<typeof location>): readonly RawCandidate[] {
  const stated = { licence: license, version: versionOf(version) };
  return [
    { url: pdf_url, kind: "pdf", ...stated },
    { url: landing_page_url, kind: "landing", ...stated },
  ];
}

/** Identifiers come as URLs: `https://pubmed.ncbi.nlm.nih.gov/17183658`. */
function tail(name: string | null | undefined): string | undefined {
  return name?.split("/").at(-1);
}

function pmcidIn(name: string | null | undefined): string | undefined {
  const last = tail(name);
  return last === undefined || /^PMC/i.test(last) ? last : `PMC${last}`;
}

function openalexIds(id: string | null | undefined): WorkIds {
  const openalexId = openalexOf(tail(id) ?? "");
  return openalexId === undefined ? {} : { openalex: openalexId };
}

import { z } from "zod";
import { doiOfArxivId } from "../identifiers/arxiv-id.ts";
import { openalexOf } from "../identifiers/identifiers.ts";
import { kindByUrl } from "../identifiers/web-url.ts";
import type { WorkIds } from "../work.ts";
import { findingForStatus, findingOf, idsFrom, type RawCandidate, versionOf } from "./finding.ts";
import { lenientText, lenientYear, optionalListOf, optionalText, readJson } from "./json-response.ts";
import { encodedPath, urlWithQuery } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const location = z.object({
  is_oa: z.boolean().nullish(),
  pdf_url: optionalText,
  landing_page_url: optionalText,
  license: lenientText,
  version: lenientText,
});

const record = z.object({
  id: optionalText,
  doi: optionalText,
  title: lenientText,
  publication_year: lenientYear,
  ids: z.object({ pmid: optionalText, pmcid: optionalText }).nullish(),
  open_access: z.object({ is_oa: z.boolean().nullish(), oa_url: optionalText }),
  best_oa_location: location.nullish(),
  locations: optionalListOf(location),
});

const FIELDS = "id,doi,title,publication_year,ids,open_access,best_oa_location,locations";

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
  parse(response, work) {
    const statusFinding = findingForStatus(response);
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, record);
    if ("failure" in parsed) return parsed.failure;
    const { data } = parsed;
    const openLocations = [data.best_oa_location, ...data.locations.filter(each => each.is_oa === true)];
    const oaUrl = data.open_access.oa_url;
    return findingOf(
      work,
      [
        ...openLocations.flatMap(each => (each ? rawCandidatesOf(each) : [])),
        { url: oaUrl, kind: kindByUrl(oaUrl ?? "") },
      ],
      {
        noneReason: data.open_access.is_oa === false ? "not-open" : "no-copy",
        ids: {
          ...idsFrom({ doi: data.doi, pmid: tail(data.ids?.pmid), pmcid: pmcidIn(data.ids?.pmcid) }),
          ...openalexIds(data.id),
        },
        title: data.title,
        year: data.publication_year,
      },
    );
  },
};

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

import { z } from "zod";
import { doiOfArxivId } from "../identifiers/arxiv-id.ts";
import { findingForStatus, findingOf, idsFrom, type RawCandidate, versionOf } from "./finding.ts";
import { lenientText, lenientYear, optionalListOf, optionalText, readJson } from "./json-response.ts";
import { encodedPath } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const location = z.object({
  url_for_pdf: optionalText,
  url_for_landing_page: optionalText,
  url: optionalText,
  license: lenientText,
  version: lenientText,
});

const record = z.object({
  doi: z.string(),
  is_oa: z.boolean().nullish(),
  title: lenientText,
  year: lenientYear,
  journal_name: lenientText,
  publisher: lenientText,
  genre: lenientText,
  oa_status: lenientText,
  z_authors: optionalListOf(z.object({ family: lenientText, given: lenientText, raw_author_name: lenientText })).catch(
    [],
  ),
  best_oa_location: location.nullish(),
  oa_locations: optionalListOf(location),
});

export const unpaywall: Resolver = {
  name: "unpaywall",
  needs: ["DOCSTOKG_MAILTO"],
  requestFor({ ids }) {
    const doi = ids.doi ?? (ids.arxiv && doiOfArxivId(ids.arxiv));
    return doi === undefined
      ? undefined
      : { url: `https://api.unpaywall.org/v2/${encodedPath(doi)}`, role: "metadata" };
  },
  parse(response, work) {
    if (response.status === 422) {
      const message = "api.unpaywall.org rejected the email address (--mailto or DOCSTOKG_MAILTO); set a real one";
      return { kind: "failure", reason: "refused", message, isForAllWorks: true };
    }
    const statusFinding = findingForStatus(response, "service");
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, record);
    if ("failure" in parsed) return parsed.failure;
    const { data } = parsed;
    const rawCandidates = [data.best_oa_location, ...data.oa_locations].flatMap(each =>
      each ? rawCandidatesOf(each) : [],
    );
    return findingOf(work, rawCandidates, {
      noneReason: data.is_oa === false ? "not-open" : "no-copy",
      ids: idsFrom({ doi: data.doi }),
      metadata: {
        title: data.title,
        year: data.year,
        authors: data.z_authors.map(({ family, given, raw_author_name }) => ({ family, given, name: raw_author_name })),
        venue: data.journal_name,
        publisher: data.publisher,
        type: data.genre,
        licence: data.best_oa_location?.license,
        openAccess: data.oa_status,
      },
    });
  },
};

function rawCandidatesOf(each: z.infer<typeof location>): readonly RawCandidate[] {
  const stated = { licence: each.license, version: versionOf(each.version) };
  return [
    { url: each.url_for_pdf, kind: "pdf", ...stated },
    { url: each.url_for_landing_page ?? each.url, kind: "landing", ...stated },
  ];
}

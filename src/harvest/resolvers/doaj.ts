import { z } from "zod";
import { findingForStatus, findingOf, matchesDoi, type RawCandidate } from "./finding.ts";
import { lenientText, lenientYear, listOf, optionalListOf, optionalText, readJson } from "./json-response.ts";
import { quotedPhrase } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const article = z.object({
  bibjson: z.object({
    title: lenientText,
    year: lenientYear,
    identifier: optionalListOf(z.object({ id: optionalText, type: optionalText })),
    link: optionalListOf(z.object({ type: optionalText, content_type: lenientText, url: optionalText })),
    journal: z
      .object({ license: optionalListOf(z.object({ type: lenientText })) })
      .nullish()
      .catch(undefined),
  }),
});
const page = z.object({ results: listOf(article, 25) });

export const doaj: Resolver = {
  name: "doaj",
  needs: [],
  requestFor({ ids: { doi } }) {
    if (doi === undefined) return undefined;
    // This field ignores case; the short `doi:` does not, and publishers deposit DOIs in upper case.
    const query = encodeURIComponent(`bibjson.identifier.id:${quotedPhrase(doi)}`);
    return { url: `https://doaj.org/api/v4/search/articles/${query}?pageSize=5`, role: "metadata" };
  },
  parse(response, work) {
    const statusFinding = findingForStatus(response, "service");
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, page);
    if ("failure" in parsed) return parsed.failure;
    const hit = parsed.data.results.find(({ bibjson }) =>
      bibjson.identifier.some(each => each.type === "doi" && matchesDoi(work, each.id)),
    )?.bibjson;
    if (hit === undefined) return { kind: "none", reason: "unknown-work" };
    const licence = hit.journal?.license[0]?.type;
    const links = hit.link.filter(({ type }) => type === "fulltext");
    const rawCandidates = links.map(
      ({ url, content_type }): RawCandidate => ({ url, kind: kindOf(content_type), version: "published", licence }),
    );
    return findingOf(work, rawCandidates, { noneReason: "no-copy", metadata: { title: hit.title, year: hit.year } });
  },
};

/** As the publisher declares it; "HTML" is a page that may have the text or link to it. */
function kindOf(type: string | null | undefined): "pdf" | "xml" | "landing" {
  const declared = type?.toLowerCase() ?? "";
  if (declared.includes("pdf")) return "pdf";
  return declared.includes("xml") ? "xml" : "landing";
}

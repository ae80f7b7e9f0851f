import { z } from "zod";
import { findingForStatus, findingOf, matchesDoi, type RawCandidate } from "./finding.ts";
import { lenientText, lenientYear, listOf, optionalListOf, readJson, text } from "./json-response.ts";
import { quotedPhrase } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const article = z.object({
  bibjson: z.object({
    title: lenientText,
    year: lenientYear,
    identifier: optionalListOf(z.object({ id: text, type: text })),
    link: optionalListOf(z.object({ type: text, content_type: lenientText, url: text })),
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
    // This field is searched without regard to case; the short `doi:` is not, and publishers deposit capitals.
    const query = encodeURIComponent(`bibjson.identifier.id:${quotedPhrase(doi)}`);
    return { url: `https://doaj.org/api/v4/search/articles/${query}?pageSize=5`, role: "metadata" };
  },
  read(response, work) {
    const statusFinding = findingForStatus(response);
    if (statusFinding !== undefined) return statusFinding;
    const read = readJson(response, page);
    if ("failure" in read) return read.failure;
    const hit = read.data.results.find(({ bibjson }) =>
      bibjson.identifier.some(each => each.type === "doi" && matchesDoi(work, each.id)),
    )?.bibjson;
    if (hit === undefined) return { kind: "none", reason: "unknown-work" };
    const licence = hit.journal?.license[0]?.type;
    const links = hit.link.filter(({ type }) => type === "fulltext");
    const rawCandidates = links.map(
      ({ url, content_type }): RawCandidate => ({ url, kind: kindOf(content_type), version: "published", licence }),
    );
    return findingOf(work, rawCandidates, { noneReason: "no-copy", title: hit.title, year: hit.year });
  },
};

/** As the publisher declares it; "HTML" is its page, which may hold the text or lead to it. */
function kindOf(type: string | null | undefined): "pdf" | "xml" | "landing" {
  const declared = type?.toLowerCase() ?? "";
  if (declared.includes("pdf")) return "pdf";
  return declared.includes("xml") ? "xml" : "landing";
}

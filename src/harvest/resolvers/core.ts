import { z } from "zod";
import { kindByUrl } from "../identifiers/web-url.ts";
import { findingForStatus, findingOf, matchesDoi, type RawCandidate } from "./finding.ts";
import { lenientText, lenientYear, listOf, optionalListOf, optionalText, readJson } from "./json-response.ts";
import { quotedPhrase, urlWithQuery } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const result = z.object({
  doi: optionalText,
  title: lenientText,
  yearPublished: lenientYear,
  downloadUrl: optionalText,
  sourceFulltextUrls: z.union([optionalListOf(z.string()), z.string().transform(one => [one])]),
  links: optionalListOf(z.object({ type: lenientText, url: optionalText })),
});
const page = z.object({ results: listOf(result, 25) });

export const core: Resolver = {
  name: "core",
  needs: ["CORE_API_KEY"],
  requestFor({ ids: { doi } }) {
    if (doi === undefined) return undefined;
    const query = { q: `doi:${quotedPhrase(doi)}`, limit: "5" };
    return { url: urlWithQuery("https://api.core.ac.uk/v3/search/works", query), role: "metadata" };
  },
  parse(response, work) {
    const statusFinding = findingForStatus(response, "service");
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, page);
    if ("failure" in parsed) return parsed.failure;
    const hits = parsed.data.results.filter(each => matchesDoi(work, each.doi));
    const [first] = hits;
    if (first === undefined) return { kind: "none", reason: "unknown-work" };
    return findingOf(work, hits.flatMap(rawCandidatesOf), {
      noneReason: "no-copy",
      metadata: { title: first.title, year: first.yearPublished },
    });
  },
};

function rawCandidatesOf({ downloadUrl, sourceFulltextUrls, links }: z.infer<typeof result>): readonly RawCandidate[] {
  const downloads = links.filter(({ type }) => type === "download").map(({ url }) => url);
  // Some "download" links are landing pages, so the URL decides the kind.
  return [downloadUrl, ...downloads, ...sourceFulltextUrls].map(url => ({ url, kind: kindByUrl(url ?? "") }));
}

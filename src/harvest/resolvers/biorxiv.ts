import { z } from "zod";
import type { WorkIds } from "../work.ts";
import { findingForStatus, findingOf, type RawCandidate } from "./finding.ts";
import { lenientText, optionalListOf, optionalText, readJson } from "./json-response.ts";
import { encodedPath } from "./request-url.ts";
import type { Resolver, ResolverRequest } from "./resolver.ts";

const preprint = z.object({
  doi: z.string(),
  title: lenientText,
  date: lenientText,
  version: z.union([z.string(), z.number()]),
  license: lenientText,
  jatsxml: optionalText,
});
const details = z.object({ collection: optionalListOf(preprint) });

/** Queries bioRxiv, then medRxiv: their DOIs look alike. */
export const biorxiv: Resolver = {
  name: "biorxiv",
  needs: [],
  isRepository: true,
  offers: ["xml"],
  requestFor({ ids }) {
    const doi = preprintDoi(ids);
    return doi === undefined ? undefined : detailsOf("biorxiv", doi);
  },
  parse(response, work) {
    const server = URL.parse(response.url)?.pathname.startsWith("/details/medrxiv/") ? "medrxiv" : "biorxiv";
    const doi = preprintDoi(work.ids);
    const statusFinding = findingForStatus(response, "service");
    if (statusFinding !== undefined && statusFinding.kind !== "none") return statusFinding;
    const parsed = statusFinding === undefined ? readJson(response, details) : { data: { collection: [] } };
    if ("failure" in parsed) return parsed.failure;
    const newest = parsed.data.collection
      .filter(each => each.doi.toLowerCase() === doi && /^\d{1,3}$/.test(String(each.version)))
      .toSorted((one, other) => Number(other.version) - Number(one.version))[0];
    if (newest === undefined || doi === undefined)
      return server === "biorxiv" && doi !== undefined
        ? { kind: "follow-up", request: detailsOf("medrxiv", doi) }
        : { kind: "none", reason: "unknown-work" };
    const stated = { version: "submitted", licence: newest.license?.replaceAll("_", "-") } as const;
    const rawCandidates: readonly RawCandidate[] = [
      {
        url: `https://www.${server}.org/content/${encodedPath(doi)}v${newest.version}.full.pdf`,
        kind: "pdf",
        ...stated,
      },
      { url: newest.jatsxml, kind: "xml", ...stated },
    ];
    return findingOf(work, rawCandidates, {
      noneReason: "no-copy",
      metadata: { title: newest.title, year: newest.date },
    });
  },
};

function detailsOf(server: "biorxiv" | "medrxiv", doi: string): ResolverRequest {
  return { url: `https://api.biorxiv.org/details/${server}/${encodedPath(doi)}/na/json`, role: "metadata" };
}

/** Journals also use the prefix 10.1101, but their DOIs start with a word. */
function preprintDoi({ doi }: WorkIds): string | undefined {
  return /^10\.(?:1101|64898)\/\d/.test(doi ?? "") ? doi : undefined;
}

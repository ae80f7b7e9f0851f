import { z } from "zod";
import type { WorkIds } from "../work.ts";
import { findingOf, type Place, verdictOf } from "./finding.ts";
import { anyOf, aside, readJson, text } from "./json-response.ts";
import { inPath } from "./request-url.ts";
import type { Question, Resolver } from "./resolver.ts";

const preprint = z.object({
  doi: z.string(),
  title: aside,
  date: aside,
  version: z.union([z.string(), z.number()]),
  license: aside,
  jatsxml: text,
});
const details = z.object({ collection: anyOf(preprint) });

/** bioRxiv, and medRxiv when that one does not know the DOI: both number theirs alike. */
export const biorxiv: Resolver = {
  name: "biorxiv",
  needs: [],
  ask({ ids }) {
    const doi = preprintDoi(ids);
    return doi === undefined ? undefined : detailsOf("biorxiv", doi);
  },
  read(answer, work) {
    const server = URL.parse(answer.url)?.pathname.startsWith("/details/medrxiv/") ? "medrxiv" : "biorxiv";
    const doi = preprintDoi(work.ids);
    const verdict = verdictOf(answer);
    if (verdict !== undefined && verdict.kind !== "none") return verdict;
    const read = verdict === undefined ? readJson(answer, details) : { data: { collection: [] } };
    if ("trouble" in read) return read.trouble;
    const newest = read.data.collection
      .filter(each => each.doi.toLowerCase() === doi && /^\d{1,3}$/.test(String(each.version)))
      .toSorted((one, other) => Number(other.version) - Number(one.version))[0];
    if (newest === undefined || doi === undefined)
      return server === "biorxiv" && doi !== undefined
        ? { kind: "ask", question: detailsOf("medrxiv", doi) }
        : { kind: "none", reason: "unknown-work" };
    const stated = { version: "submitted", licence: newest.license?.replaceAll("_", "-") } as const;
    const places: readonly Place[] = [
      { url: `https://www.${server}.org/content/${inPath(doi)}v${newest.version}.full.pdf`, kind: "pdf", ...stated },
      { url: newest.jatsxml, kind: "xml", ...stated },
    ];
    return findingOf(work, places, { otherwise: "no-copy", title: newest.title, year: newest.date });
  },
};

function detailsOf(server: "biorxiv" | "medrxiv", doi: string): Question {
  return { url: `https://api.biorxiv.org/details/${server}/${inPath(doi)}/na/json`, role: "metadata" };
}

/** Under 10.1101 a press publishes journals as well, whose DOIs begin with a word. */
function preprintDoi({ doi }: WorkIds): string | undefined {
  return /^10\.(?:1101|64898)\/\d/.test(doi ?? "") ? doi : undefined;
}

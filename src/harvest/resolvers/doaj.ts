import { z } from "zod";
import { findingOf, isDoiOf, type Place, verdictOf } from "./finding.ts";
import { anyOf, aside, listOf, readJson, text, yearAside } from "./json-response.ts";
import { phrase } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const article = z.object({
  bibjson: z.object({
    title: aside,
    year: yearAside,
    identifier: anyOf(z.object({ id: text, type: text })),
    link: anyOf(z.object({ type: text, content_type: aside, url: text })),
    journal: z
      .object({ license: anyOf(z.object({ type: aside })) })
      .nullish()
      .catch(undefined),
  }),
});
const page = z.object({ results: listOf(article, 25) });

export const doaj: Resolver = {
  name: "doaj",
  needs: [],
  ask({ ids: { doi } }) {
    if (doi === undefined) return undefined;
    // This field is searched without regard to case; the short `doi:` is not, and publishers deposit capitals.
    const query = encodeURIComponent(`bibjson.identifier.id:${phrase(doi)}`);
    return { url: `https://doaj.org/api/v4/search/articles/${query}?pageSize=5`, role: "metadata" };
  },
  read(answer, work) {
    const verdict = verdictOf(answer);
    if (verdict !== undefined) return verdict;
    const read = readJson(answer, page);
    if ("trouble" in read) return read.trouble;
    const hit = read.data.results.find(({ bibjson }) =>
      bibjson.identifier.some(each => each.type === "doi" && isDoiOf(work, each.id)),
    )?.bibjson;
    if (hit === undefined) return { kind: "none", reason: "unknown-work" };
    const licence = hit.journal?.license[0]?.type;
    const links = hit.link.filter(({ type }) => type === "fulltext");
    const places = links.map(
      ({ url, content_type }): Place => ({ url, kind: kindOf(content_type), version: "published", licence }),
    );
    return findingOf(work, places, { otherwise: "no-copy", title: hit.title, year: hit.year });
  },
};

/** As the publisher declares it; "HTML" is its page, which may hold the text or lead to it. */
function kindOf(type: string | null | undefined): "pdf" | "xml" | "landing" {
  const declared = type?.toLowerCase() ?? "";
  if (declared.includes("pdf")) return "pdf";
  return declared.includes("xml") ? "xml" : "landing";
}

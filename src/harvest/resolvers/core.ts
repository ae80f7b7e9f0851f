import { z } from "zod";
import { kindByAddress } from "../identifiers/web-url.ts";
import { findingOf, isDoiOf, type Place, verdictOf } from "./finding.ts";
import { anyOf, aside, listOf, readJson, text, yearAside } from "./json-response.ts";
import { address, phrase } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const result = z.object({
  doi: text,
  title: aside,
  yearPublished: yearAside,
  downloadUrl: text,
  sourceFulltextUrls: z.union([anyOf(z.string()), z.string().transform(one => [one])]),
  links: anyOf(z.object({ type: aside, url: text })),
});
const page = z.object({ results: listOf(result, 25) });

export const core: Resolver = {
  name: "core",
  needs: ["CORE_API_KEY"],
  ask({ ids: { doi } }) {
    if (doi === undefined) return undefined;
    const query = { q: `doi:${phrase(doi)}`, limit: "5" };
    return { url: address("https://api.core.ac.uk/v3/search/works", query), role: "metadata" };
  },
  read(answer, work) {
    const verdict = verdictOf(answer);
    if (verdict !== undefined) return verdict;
    const read = readJson(answer, page);
    if ("trouble" in read) return read.trouble;
    const hits = read.data.results.filter(each => isDoiOf(work, each.doi));
    const [first] = hits;
    if (first === undefined) return { kind: "none", reason: "unknown-work" };
    return findingOf(work, hits.flatMap(placesOf), {
      otherwise: "no-copy",
      title: first.title,
      year: first.yearPublished,
    });
  },
};

function placesOf({ downloadUrl, sourceFulltextUrls, links }: z.infer<typeof result>): readonly Place[] {
  const downloads = links.filter(({ type }) => type === "download").map(({ url }) => url);
  // Some downloads are pages elsewhere, so only the address is believed.
  return [downloadUrl, ...downloads, ...sourceFulltextUrls].map(url => ({ url, kind: kindByAddress(url ?? "") }));
}

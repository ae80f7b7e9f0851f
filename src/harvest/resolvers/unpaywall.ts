import { z } from "zod";
import { doiOfArxivId } from "../identifiers/arxiv-id.ts";
import { findingOf, idsFrom, type Place, verdictOf, versionOf } from "./finding.ts";
import { anyOf, aside, readJson, text, yearAside } from "./json-response.ts";
import { inPath } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const location = z.object({ url_for_pdf: text, url_for_landing_page: text, url: text, license: aside, version: aside });

const record = z.object({
  doi: z.string(),
  is_oa: z.boolean().nullish(),
  title: aside,
  year: yearAside,
  best_oa_location: location.nullish(),
  oa_locations: anyOf(location),
});

export const unpaywall: Resolver = {
  name: "unpaywall",
  needs: ["DOCSTOKG_MAILTO"],
  ask({ ids }) {
    const doi = ids.doi ?? (ids.arxiv && doiOfArxivId(ids.arxiv));
    return doi === undefined ? undefined : { url: `https://api.unpaywall.org/v2/${inPath(doi)}`, role: "metadata" };
  },
  read(answer, work) {
    if (answer.status === 422) {
      const message = "api.unpaywall.org does not take the mail address of DOCSTOKG_MAILTO; it wants a real one";
      return { kind: "trouble", reason: "refused", message };
    }
    const verdict = verdictOf(answer);
    if (verdict !== undefined) return verdict;
    const read = readJson(answer, record);
    if ("trouble" in read) return read.trouble;
    const { data } = read;
    const places = [data.best_oa_location, ...data.oa_locations].flatMap(each => (each ? placesOf(each) : []));
    return findingOf(work, places, {
      otherwise: data.is_oa === false ? "not-open" : "no-copy",
      ids: idsFrom({ doi: data.doi }),
      title: data.title,
      year: data.year,
    });
  },
};

function placesOf(each: z.infer<typeof location>): readonly Place[] {
  const stated = { licence: each.license, version: versionOf(each.version) };
  return [
    { url: each.url_for_pdf, kind: "pdf", ...stated },
    { url: each.url_for_landing_page ?? each.url, kind: "landing", ...stated },
  ];
}

import { type CatalogueIndex, isKnownTo } from "../catalogue-index.ts";
import { decoded, json, type SimulatedService } from "../exchange.ts";

/** api.biorxiv.org: the versions of a preprint. */
export function biorxiv(catalogue: CatalogueIndex): SimulatedService {
  return ({ path }) => {
    const [, server, name = ""] = /^\/details\/(biorxiv|medrxiv)\/(.+?)(?:\/na(?:\/json)?)?\/?$/.exec(path) ?? [];
    const work = catalogue.byDoi(decoded(name) ?? "");
    if (work === undefined || !isKnownTo(work, "biorxiv")) {
      return json({ messages: [{ status: "no posts found" }], collection: [] });
    }
    const { ids, title, year, authors } = work;
    return json({
      messages: [{ status: "ok" }],
      collection: [
        {
          title,
          authors: authors.join("; "),
          doi: ids.doi,
          date: `${year}-03-14`,
          version: "1",
          type: "new results",
          license: "cc_by",
          category: "ecology",
          jatsxml: `https://www.biorxiv.org/content/early/${year}/03/14/${ids.doi?.split("/")[1]}.source.xml`,
          published: "NA",
          server,
        },
      ],
    });
  };
}

import type { CatalogueIndex } from "../catalogue-index.ts";
import { decoded, json, type SimulatedService } from "../exchange.ts";

/** api.datacite.org: DOIs that are not registered at Crossref. */
export function datacite(catalogue: CatalogueIndex): SimulatedService {
  return ({ path }) => {
    const [, name = ""] = /^\/dois\/(.+)$/.exec(path) ?? [];
    const work = catalogue.byDoi(decoded(name) ?? "");
    if (work?.registrar !== "datacite") {
      return json({ errors: [{ status: "404", title: "The resource you are looking for doesn't exist." }] }, 404);
    }
    const { ids, title, year, authors, landing } = work;
    const attributes = {
      doi: ids.doi,
      titles: [{ title }],
      creators: authors.map(author => ({ name: author })),
      publicationYear: year,
      url: landing,
      contentUrl: null,
      rightsList: [{ rightsIdentifier: "cc-by-4.0" }],
      state: "findable",
    };
    return json({ data: { id: ids.doi, type: "dois", attributes } }, 200, {
      "content-type": "application/vnd.api+json",
    });
  };
}

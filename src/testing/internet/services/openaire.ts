import type { SimulatedWork } from "../catalogue.ts";
import { type CatalogueIndex, copiesVia, isKnownTo } from "../catalogue-index.ts";
import { json, type SimulatedService } from "../exchange.ts";

const PARAMETERS = ["pid", "page", "pageSize", "sortBy", "search", "cursor", "id", "originalId"];

/** api.openaire.eu: research products with their instances, mostly landing pages. */
export function openaire(catalogue: CatalogueIndex): SimulatedService {
  return ({ path, query }) => {
    if (!/^\/graph\/v[12]\/researchProducts$/.test(path)) return json({ message: "Not found" }, 404);
    const unknown = [...query.keys()].find(name => !PARAMETERS.includes(name));
    if (unknown !== undefined) return json({ message: `Unknown parameter: ${unknown}`, code: 400 }, 400);
    const work = catalogue.byDoi(query.get("pid") ?? "");
    const results = work !== undefined && isKnownTo(work, "openaire") ? [record(work)] : [];
    return json({ header: { numFound: results.length, pageSize: 10, nextCursor: null }, results });
  };
}

function record(work: SimulatedWork) {
  const { ids, title, year, authors } = work;
  const pids = [{ scheme: "doi", value: ids.doi }];
  const open = {
    code: "c_abf2",
    label: "OPEN",
    scheme: "http://vocabularies.coar-repositories.org/documentation/access_rights/",
  };
  return {
    id: `doi_________::${work.record}`,
    mainTitle: title,
    type: "publication",
    publicationDate: `${year}-04-01`,
    authors: authors.map((fullName, index) => ({ fullName, rank: index + 1 })),
    bestAccessRight: open,
    pids,
    instances: copiesVia(work, "openaire").map(({ url, licence, hostType }) => ({
      pids,
      license: licence,
      accessRight: { ...open, openAccessRoute: hostType === "repository" ? "green" : "gold" },
      type: "Article",
      urls: [url],
      publicationDate: `${year}-04-01`,
      refereed: "peerReviewed",
    })),
    isGreen: null,
  };
}

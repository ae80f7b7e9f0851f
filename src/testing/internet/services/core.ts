import type { SimulatedWork } from "../catalogue.ts";
import { type CatalogueIndex, copiesVia, isKnownTo } from "../catalogue-index.ts";
import { json, type SimulatedService } from "../exchange.ts";

/** api.core.ac.uk: search for works. Without an API key it returns 500, as the real service did. */
export function core(catalogue: CatalogueIndex): SimulatedService {
  return ({ path, query, headers }) => {
    if (!/^Bearer \S/i.test(headers["authorization"] ?? "")) return json({ message: "Internal server error" }, 500);
    if (path.replace(/\/$/, "") !== "/v3/search/works") return json({ message: "Not found" }, 404);
    const [, doi = ""] = /doi:"?([^"\s]+)"?/.exec(query.get("q") ?? "") ?? [];
    const work = catalogue.byDoi(doi);
    const results = work !== undefined && isKnownTo(work, "core") ? [record(work)] : [];
    return json({ totalHits: results.length, limit: Number(query.get("limit") ?? 10), offset: 0, results });
  };
}

function record(work: SimulatedWork) {
  const { ids, title, year, authors } = work;
  const [copy] = copiesVia(work, "core");
  return {
    id: work.record,
    doi: ids.doi,
    title,
    yearPublished: year,
    authors: authors.map(name => ({ name })),
    downloadUrl: copy?.url ?? null,
    sourceFulltextUrls: copy === undefined ? [] : [copy.url],
    links: [
      ...(copy === undefined ? [] : [{ type: "download", url: copy.url }]),
      { type: "display", url: `https://core.ac.uk/works/${work.record}` },
    ],
    outputs: [`https://api.core.ac.uk/v3/outputs/${work.record}`],
  };
}

import type { SimulatedWork } from "../catalogue.ts";
import { type CatalogueIndex, copiesVia, isKnownTo } from "../catalogue-index.ts";
import { decoded, html, json, type SimulatedService } from "../exchange.ts";

/**
 * doaj.org/api: articles of open journals, mostly with landing pages. A user agent that contains "bot" or "spider" is
 * refused.
 */
export function doaj(catalogue: CatalogueIndex): SimulatedService {
  return ({ path, query, headers }) => {
    if (/bot|spider/i.test(headers["user-agent"] ?? "")) return html("403 Forbidden", "<h1>403 Forbidden</h1>", 403);
    const [, search = ""] = /^\/api(?:\/v\d)?\/search\/articles\/(.+)$/.exec(path) ?? [];
    const [, doi = ""] = /^(?:doi|bibjson\.identifier\.id(?:\.exact)?):"?([^"]+)"?$/.exec(decoded(search) ?? "") ?? [];
    if (search === "") return json({ status: "not_found", error: "no such resource" }, 404);
    const work = catalogue.byDoi(doi);
    const results = work !== undefined && isKnownTo(work, "doaj") ? [record(work)] : [];
    const pageSize = Number(query.get("pageSize") ?? 10);
    if (!(pageSize >= 1 && pageSize <= 100))
      return json({ status: "bad_request", error: "pageSize: at most 100" }, 400);
    return json(
      { total: results.length, page: 1, pageSize, timestamp: "2026-11-16T00:00:00Z", query: decoded(search), results },
      200,
      { "x-total-count": String(results.length) },
    );
  };
}

function record(work: SimulatedWork) {
  const { ids, title, year, authors } = work;
  return {
    id: ids.openalex?.toLowerCase(),
    created_date: `${year}-05-01T08:00:00Z`,
    last_updated: `${year}-05-01T08:00:00Z`,
    bibjson: {
      title,
      year: String(year),
      identifier: [{ type: "doi", id: ids.doi }],
      author: authors.map(name => ({ name })),
      journal: { title: "Journal of Simulated Findings", country: "DE" },
      link: copiesVia(work, "doaj").map(({ url, kind }) => ({
        type: "fulltext",
        content_type: kind === "pdf" ? "PDF" : "HTML",
        url,
      })),
    },
  };
}

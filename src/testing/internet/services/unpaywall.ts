import type { SimulatedWork } from "../catalogue.ts";
import { type CatalogueIndex, copiesVia } from "../catalogue-index.ts";
import type { Copy } from "../copy.ts";
import { decoded, json, type SimulatedReply, type SimulatedService } from "../exchange.ts";

/** api.unpaywall.org: open copies of a DOI. Requires a valid email address. */
export function unpaywall(catalogue: CatalogueIndex): SimulatedService {
  return ({ path, query }) => {
    const [, name] = /^\/v2\/(.+)$/.exec(path) ?? [];
    if (name === undefined) return failed(404, "not found");
    const email = query.get("email");
    if (email === null || !/^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(email)) {
      return failed(422, "Email address required in API call, see https://unpaywall.org/products/api");
    }
    if (/@example\.com$/i.test(email)) {
      return failed(422, "Please use your own email address in API calls. See http://unpaywall.org/products/api");
    }
    const doi = decoded(name) ?? name;
    const work = catalogue.byDoi(doi);
    if (work === undefined || work.registrar !== "crossref") {
      return failed(404, `'${doi}' is an invalid doi.  See https://doi.org/${doi}`);
    }
    return json(record(work));
  };
}

function failed(status: number, message: string): SimulatedReply {
  return json({ HTTP_status_code: status, error: true, message }, status);
}

function record(work: SimulatedWork) {
  const { ids, title, year, authors } = work;
  const locations = copiesVia(work, "unpaywall").map((copy, index) =>
    location(copy, `https://doi.org/${ids.doi}`, index),
  );
  const [best] = locations;
  return {
    doi: ids.doi,
    doi_url: `https://doi.org/${ids.doi}`,
    title,
    genre: "journal-article",
    is_paratext: false,
    published_date: `${year}-04-01`,
    year,
    journal_name: "Journal of Simulated Findings",
    publisher: "Papermill Press",
    is_oa: best !== undefined,
    oa_status: best === undefined ? "closed" : best.host_type === "repository" ? "green" : "gold",
    has_repository_copy: locations.some(({ host_type }) => host_type === "repository"),
    best_oa_location: best ?? null,
    first_oa_location: best ?? null,
    oa_locations: locations,
    oa_locations_embargoed: [],
    data_standard: 2,
    z_authors: authors.map(name => ({ raw_author_name: name })),
    updated: `${year}-05-01T08:00:00Z`,
  };
}

function location({ url, kind, licence, version, hostType }: Copy, doiUrl: string, index: number) {
  return {
    url,
    url_for_pdf: kind === "pdf" ? url : null,
    url_for_landing_page: kind === "landing" ? url : doiUrl,
    evidence: "deprecated",
    license: licence,
    version,
    host_type: hostType,
    is_best: index === 0,
    pmh_id: null,
    endpoint_id: null,
    repository_institution: null,
    oa_date: null,
    updated: "deprecated",
  };
}

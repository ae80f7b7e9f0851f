import type { SimulatedWork } from "../catalogue.ts";
import { type CatalogueIndex, copiesVia } from "../catalogue-index.ts";
import type { Copy } from "../copy.ts";
import {
  decoded,
  html,
  json,
  redirect,
  type SimulatedReply,
  type SimulatedRequest,
  type SimulatedService,
} from "../exchange.ts";

/** api.openalex.org: a work by any of its identifiers, and filtered lists by page or by cursor. */
export function openalex(catalogue: CatalogueIndex): SimulatedService {
  return request => {
    const [, name] = /^\/works\/(.+)$/.exec(request.path) ?? [];
    if (name === undefined) return request.path === "/works" ? list(catalogue, request) : notFound();
    const work = findWork(catalogue, decoded(name) ?? "");
    return work === undefined || work.registrar === "none" ? notFound() : json(selected(record(work), request));
  };
}

/** content.openalex.org: a paid copy, which requires an API key. */
export function openalexContent(catalogue: CatalogueIndex): SimulatedService {
  return ({ path, query, headers }) => {
    const [, id = ""] = /^\/works\/(W\d+)\.pdf$/.exec(path) ?? [];
    if (query.get("api_key") === null && headers["api_key"] === undefined) {
      return json({ error: "Unauthorized", message: "An api_key is needed to download content." }, 401);
    }
    const copy = goodCopy(catalogue.by("openalex", id));
    return copy === undefined ? json({ error: "Not found", message: `No content for ${id}` }, 404) : redirect(copy.url);
  };
}

function goodCopy(work: SimulatedWork | undefined): Copy | undefined {
  if (work === undefined) return undefined;
  return copiesVia(work, "openalex").find(({ isGood }) => isGood);
}

/** OpenAlex returns 404 as an HTML page. */
function notFound(): SimulatedReply {
  return html("404 Not Found", "<h1>Not Found</h1>", 404);
}

function findWork(catalogue: CatalogueIndex, name: string): SimulatedWork | undefined {
  const [, kind, id = ""] = /^(pmid|pmcid|openalex):(.+)$/i.exec(name) ?? [];
  if (kind !== undefined) return catalogue.by(kind.toLowerCase() as "pmid" | "pmcid" | "openalex", id);
  const [, openalexId] = /^(?:https:\/\/openalex\.org\/)?(W\d+)$/i.exec(name) ?? [];
  return openalexId === undefined ? catalogue.byDoi(name) : catalogue.by("openalex", openalexId.toUpperCase());
}

const PER_PAGE_MAX = 200;

function list(catalogue: CatalogueIndex, request: SimulatedRequest): SimulatedReply {
  const { query } = request;
  const filters = (query.get("filter") ?? "")
    .split(",")
    .filter(part => part !== "")
    .map(filterOf);
  const problem = filters.find(filter => typeof filter === "string");
  if (problem !== undefined) return json({ error: "Invalid query parameters error.", message: problem }, 403);
  const perPage = Number(query.get("per-page") ?? query.get("per_page") ?? 25);
  if (!(perPage >= 1 && perPage <= PER_PAGE_MAX)) {
    return json(
      { error: "Pagination error.", message: `per-page parameter must be between 1 and ${PER_PAGE_MAX}` },
      403,
    );
  }
  const words = (query.get("search") ?? "").toLowerCase().split(/\s+/);
  const found = catalogue.works.filter(
    work =>
      work.registrar !== "none" &&
      words.every(word => work.title.toLowerCase().includes(word)) &&
      filters.every(filter => typeof filter === "function" && filter(work)),
  );
  const cursor = query.get("cursor");
  const page = Number(query.get("page") ?? 1);
  const offset = cursor === null ? (page - 1) * perPage : offsetOf(cursor);
  if (offset === undefined) return json({ error: "Invalid cursor", message: "Cursor value is invalid." }, 400);
  const results = found.slice(offset, offset + perPage).map(work => selected(record(work), request));
  const isLast = offset + results.length >= found.length;
  const next = isLast ? null : Buffer.from(`[${offset + results.length}]`).toString("base64");
  const meta = { count: found.length, db_response_time_ms: 12, page: cursor === null ? page : null, per_page: perPage };
  return json({ meta: cursor === null ? meta : { ...meta, next_cursor: next }, results, group_by: [] });
}

/** Opaque to clients: base64 of the offset of the next page. */
function offsetOf(cursor: string): number | undefined {
  if (cursor === "*") return 0;
  const [, digits] = /^\[(\d+)\]$/.exec(Buffer.from(cursor, "base64").toString()) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

type WorkPredicate = (work: SimulatedWork) => boolean;

/** The predicate of the filter, or the error message. */
function filterOf(filter: string): WorkPredicate | string {
  const colon = filter.indexOf(":");
  const name = filter.slice(0, colon);
  const value = filter.slice(colon + 1);
  const [, from = "", to = ""] = /^(\d*)-(\d*)$/.exec(value) ?? [];
  switch (name) {
    case "doi": {
      const dois = new Set(value.split("|").map(doi => doi.toLowerCase().replace(/^https?:\/\/doi\.org\//, "")));
      return ({ ids }) => dois.has(ids.doi ?? "none");
    }
    case "pmid": {
      const pmids = new Set(value.split("|"));
      return ({ ids }) => pmids.has(ids.pmid ?? "none");
    }
    case "is_oa":
    case "open_access.is_oa":
      return work => String(copiesVia(work, "openalex").length > 0) === value;
    case "publication_year":
      if (value.includes("-")) return ({ year }) => year >= Number(from || 0) && year <= Number(to || 9999);
      return ({ year }) => value.split("|").includes(String(year));
    case "from_publication_date":
      return ({ year }) => `${year}-04-01` >= value;
    case "to_publication_date":
      return ({ year }) => `${year}-04-01` <= value;
    case "title.search":
    case "default.search":
    case "title_and_abstract.search":
      return ({ title }) => title.toLowerCase().includes(value.toLowerCase());
    case "has_doi":
      return () => value === "true";
    case "type":
      return () => value.split("|").includes("article");
    case "openalex":
    case "openalex_id":
    case "ids.openalex":
      return ({ ids }) => value.split("|").some(id => id.endsWith(ids.openalex ?? "none"));
    default:
      return `${name} is not a valid field.`;
  }
}

function selected(item: Record<string, unknown>, { query }: SimulatedRequest): Record<string, unknown> {
  const fields = query.get("select")?.split(",");
  if (fields === undefined) return item;
  return Object.fromEntries(Object.entries(item).filter(([name]) => fields.includes(name)));
}

function record(work: SimulatedWork): Record<string, unknown> {
  const { ids, title, year, authors } = work;
  const doi = `https://doi.org/${ids.doi}`;
  const locations = copiesVia(work, "openalex").map(copy => location(copy, doi));
  const closed = { is_oa: false, landing_page_url: doi, pdf_url: null, source: null, license: null, version: null };
  const [best] = locations;
  const isOpen = best !== undefined;
  return {
    id: `https://openalex.org/${ids.openalex}`,
    doi,
    title,
    display_name: title,
    publication_year: year,
    publication_date: `${year}-04-01`,
    ids: {
      openalex: `https://openalex.org/${ids.openalex}`,
      doi,
      ...(ids.pmid === undefined ? {} : { pmid: `https://pubmed.ncbi.nlm.nih.gov/${ids.pmid}` }),
      ...(ids.pmcid === undefined ? {} : { pmcid: `https://www.ncbi.nlm.nih.gov/pmc/articles/${ids.pmcid.slice(3)}` }),
    },
    type: "article",
    language: "en",
    primary_location: best ?? closed,
    best_oa_location: best ?? null,
    locations: isOpen ? locations : [closed],
    open_access: {
      is_oa: isOpen,
      oa_status: isOpen ? (best.source.type === "repository" ? "green" : "gold") : "closed",
      oa_url: isOpen ? (best.pdf_url ?? best.landing_page_url) : null,
      any_repository_has_fulltext: locations.some(({ source }) => source.type === "repository"),
    },
    authorships: authors.map(name => ({ author: { display_name: name }, raw_author_name: name })),
    has_content: { pdf: goodCopy(work) !== undefined, grobid_xml: false },
    content_urls: { pdf: `https://content.openalex.org/works/${ids.openalex}.pdf` },
    is_retracted: false,
    cited_by_count: work.record % 97,
  };
}

function location({ url, kind, licence, version, hostType }: Copy, doi: string) {
  return {
    is_oa: true,
    landing_page_url: kind === "landing" ? url : doi,
    pdf_url: kind === "pdf" ? url : null,
    source: {
      display_name: new URL(url).host,
      type: hostType === "repository" ? "repository" : "journal",
      is_oa: true,
    },
    license: licence,
    version,
    is_accepted: version !== "submittedVersion",
    is_published: version === "publishedVersion",
  };
}

import type { SimulatedWork } from "../catalogue.ts";
import { type CatalogueIndex, copiesVia } from "../catalogue-index.ts";
import {
  decoded,
  json,
  redirect,
  reply,
  type SimulatedReply,
  type SimulatedRequest,
  type SimulatedService,
  text,
} from "../exchange.ts";

/** api.crossref.org: single records, lists with filters and cursors, and the registration agency of a DOI. */
export function crossref(catalogue: CatalogueIndex): SimulatedService {
  return request => {
    const path = request.path.replace(/^\/v1(?=\/)/, "");
    const [, rest, action] = /^\/works\/(.+?)(\/agency|\/transform(?:\/.*)?)?$/.exec(path) ?? [];
    if (rest === undefined) return path === "/works" || path === "/works/" ? list(catalogue, request) : notFound();
    const work = catalogue.byDoi(decoded(rest) ?? "");
    if (work === undefined || work.registrar === "none") return notFound();
    if (action === "/agency") return agency(work);
    if (work.registrar !== "crossref") return notFound();
    if (action !== undefined) return reply(`${bibtex(work)}\n`, "application/x-bibtex", 200, {});
    return json(envelope("work", record(work)));
  };
}

/** The body is plain text for every kind of request. */
function notFound(): SimulatedReply {
  return text("Resource not found.", 404, { "content-type": "text/plain" });
}

function list(catalogue: CatalogueIndex, { query }: SimulatedRequest): SimulatedReply {
  const filters = (query.get("filter") ?? "").split(",").filter(part => part !== "");
  const unknown = filters.find(filter => !/^(?:doi|from-pub-date|until-pub-date|type|has-full-text):/.test(filter));
  if (unknown !== undefined) return failed("filter-not-available", unknown);
  const rows = Number(query.get("rows") ?? 20);
  if (!(rows >= 0 && rows <= 1000)) return failed("integer-not-valid", query.get("rows") ?? "");
  const dois = filters.filter(filter => filter.startsWith("doi:")).map(filter => filter.slice(4).toLowerCase());
  const words = (query.get("query") ?? query.get("query.bibliographic") ?? "").toLowerCase().split(/\s+/);
  const found = catalogue.works.filter(
    ({ registrar, ids, title }) =>
      registrar === "crossref" &&
      (dois.length === 0 || dois.includes(ids.doi ?? "")) &&
      words.every(word => title.toLowerCase().includes(word)),
  );
  const cursor = query.get("cursor");
  const offset = cursor === null || cursor === "*" ? Number(query.get("offset") ?? 0) : Number(cursor.slice(1));
  const selected = query.get("select")?.split(",");
  const items = found.slice(offset, offset + rows).map(work => pickFields(record(work), selected));
  return json(
    envelope("work-list", {
      facets: {},
      "total-results": found.length,
      items,
      "items-per-page": rows,
      query: { "start-index": offset, "search-terms": query.get("query") },
      ...(cursor === null ? {} : { "next-cursor": `c${offset + items.length}` }),
    }),
  );
}

function failed(type: string, value: string): SimulatedReply {
  const message = [{ type, value, message: `${value} is not valid here` }];
  return json({ status: "failed", "message-type": "validation-failure", message }, 400);
}

function agency({ ids, registrar }: SimulatedWork): SimulatedReply {
  const label = registrar === "crossref" ? "Crossref" : "DataCite";
  return json(envelope("work-agency", { DOI: ids.doi, agency: { id: registrar, label } }));
}

function envelope(type: string, message: unknown) {
  return { status: "ok", "message-type": type, "message-version": "1.0.0", message };
}

function record(work: SimulatedWork): Record<string, unknown> {
  const { ids, title, year, authors, landing } = work;
  const published = { "date-parts": [[year, 4, 1]] };
  const links = copiesVia(work, "crossref").map(({ url }) => ({
    URL: url,
    "content-type": "application/pdf",
    "content-version": "vor",
    "intended-application": "text-mining",
  }));
  // Publishers list the same URL for similarity checking; a harvester must ignore that entry.
  const checking = links.slice(0, 1).map(link => ({ ...link, "intended-application": "similarity-checking" }));
  const isOpen = links.length > 0;
  return {
    DOI: ids.doi,
    URL: `https://doi.org/${ids.doi}`,
    type: "journal-article",
    title: [title],
    author: authors.map((name, index) => ({
      given: name.split(" ")[0],
      family: name.split(" ")[1],
      sequence: index === 0 ? "first" : "additional",
      affiliation: [],
    })),
    "container-title": ["Journal of Simulated Findings"],
    publisher: "Papermill Press",
    prefix: ids.doi?.split("/")[0],
    issued: published,
    published,
    license: isOpen
      ? [
          {
            start: published,
            "content-version": "vor",
            "delay-in-days": 0,
            URL: "https://creativecommons.org/licenses/by/4.0/",
          },
        ]
      : [],
    ...(isOpen ? { link: [...links, ...checking] } : {}),
    resource: { primary: { URL: landing } },
    relation: {},
    score: 1,
    source: "Crossref",
  };
}

function pickFields(item: Record<string, unknown>, fields: readonly string[] | undefined): Record<string, unknown> {
  if (fields === undefined) return item;
  return Object.fromEntries(Object.entries(item).filter(([name]) => fields.includes(name)));
}

function bibtex({ ids, title, year, authors }: SimulatedWork): string {
  return `@article{w${ids.openalex}, title={${title}}, author={${authors.join(" and ")}}, year={${year}}, DOI={${ids.doi}} }`;
}

/** doi.org and its earlier names: redirects to the landing page, or to the agency's API if metadata is accepted. */
export function doiOrg(catalogue: CatalogueIndex): SimulatedService {
  return request => {
    const name = decoded(request.path.slice(1)) ?? "";
    const [, prefixes] = /^ra\/(.+)$/.exec(name) ?? [];
    if (prefixes !== undefined) return registrars(catalogue, prefixes);
    if (!/^10\.\d{4,9}(?:\.\d+)*\/./.test(name)) return doiError("Malformed DOI", 400);
    const work = catalogue.byDoi(name);
    if (work?.landing === undefined) return doiError("DOI Not Found", 404);
    const headers = { vary: "Accept", expires: new Date(request.wallMs + 3_600_000).toUTCString() };
    const wantsMetadata = /citationstyles|bibtex|crossref|datacite/.test(request.headers["accept"] ?? "");
    if (!wantsMetadata) return redirect(work.landing, 302, headers);
    const doi = encodeURIComponent(work.ids.doi ?? "");
    const api =
      work.registrar === "crossref" ? `api.crossref.org/v1/works/${doi}/transform` : `api.datacite.org/dois/${doi}`;
    return redirect(`https://${api}`, 302, headers);
  };
}

function registrars(catalogue: CatalogueIndex, prefixes: string): SimulatedReply {
  const answers = prefixes.split(",").map(prefix => {
    const work = catalogue.works.find(
      ({ ids, registrar }) => ids.doi?.startsWith(`${prefix}/`) && registrar !== "none",
    );
    if (work === undefined) return { DOI: prefix, status: "DOI does not exist" };
    return { DOI: prefix, RA: work.registrar === "crossref" ? "Crossref" : "DataCite" };
  });
  return json(answers);
}

function doiError(title: string, status: number): SimulatedReply {
  return reply(
    `<!doctype html>\n<html lang="en"><head><title>Error: ${title}</title></head><body><h1>${title}</h1></body></html>\n`,
    "text/html; charset=utf-8",
    status,
    {},
  );
}

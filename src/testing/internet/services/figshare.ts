import type { SimulatedWork } from "../catalogue.ts";
import { type CatalogueIndex, copiesVia, isKnownTo } from "../catalogue-index.ts";
import { json, type SimulatedRequest, type SimulatedService } from "../exchange.ts";
import { pages } from "./pages.ts";

/** api.figshare.com: articles by DOI, an article with its files, and the redirects to the files. */
export function figshare(catalogue: CatalogueIndex): SimulatedService {
  const pageService = pages(catalogue);
  return request => {
    if (request.path === "/v2/articles" || request.path === "/v2/articles/search") {
      const work = catalogue.byDoi(requestedDoi(request));
      return json(work !== undefined && isKnownTo(work, "figshare") ? [summary(work)] : []);
    }
    const [, id] = /^\/v2\/articles\/(\d+)$/.exec(request.path) ?? [];
    if (id === undefined) return pageService(request);
    const work = catalogue.by("record", id);
    if (work === undefined || !isKnownTo(work, "figshare")) {
      return json({ message: "Entity not found: article", code: "EntityNotFound" }, 404);
    }
    return json({ ...summary(work), files: [file(work)], license: { name: "CC BY 4.0" }, is_public: true });
  };
}

function requestedDoi({ method, query, body }: SimulatedRequest): string {
  if (method !== "POST") return query.get("doi") ?? "";
  const [, doi = ""] = /"doi"\s*:\s*"([^"]+)"/.exec(body) ?? [];
  return doi;
}

function summary({ ids, title, year, record }: SimulatedWork) {
  return {
    id: record,
    title,
    doi: ids.doi,
    url: `https://api.figshare.com/v2/articles/${record}`,
    url_public_html: `https://figshare.com/articles/${record}`,
    published_date: `${year}-04-01T08:00:00Z`,
    defined_type_name: "preprint",
  };
}

function file(work: SimulatedWork) {
  const id = Number(copiesVia(work, "figshare")[0]?.url.split("/").at(-1));
  return {
    id,
    name: "paper.pdf",
    size: work.file.bytes,
    is_link_only: false,
    // The link for browsers, behind a firewall that blocks programs. Programs use /v2/file/download/{id}.
    download_url: `https://figshare.com/ndownloader/files/${id}`,
    supplied_md5: work.file.md5,
    computed_md5: work.file.md5,
    mimetype: "application/pdf",
  };
}

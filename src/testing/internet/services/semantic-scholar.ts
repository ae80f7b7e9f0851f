import { digest } from "../article-file.ts";
import type { SimulatedWork } from "../catalogue.ts";
import { type CatalogueIndex, copiesVia } from "../catalogue-index.ts";
import { decoded, json, type SimulatedReply, type SimulatedRequest, type SimulatedService } from "../exchange.ts";

const FIELDS = ["paperId", "externalIds", "url", "title", "year", "authors", "isOpenAccess", "openAccessPdf", "venue"];

/** api.semanticscholar.org: a paper by any of its identifiers, or a batch. */
export function semanticScholar(catalogue: CatalogueIndex): SimulatedService {
  return request => {
    const fields = ["paperId", ...(request.query.get("fields") ?? "title").split(",")];
    const unknown = fields.filter(field => !FIELDS.includes(field));
    if (unknown.length > 0) return json({ error: `Unrecognized or unsupported fields: [${unknown.join(", ")}]` }, 400);
    if (request.path === "/graph/v1/paper/batch") return batch(catalogue, request, fields);
    const [, name] = /^\/graph\/v1\/paper\/(.+)$/.exec(request.path) ?? [];
    const id = decoded(name ?? "") ?? "";
    const work = findWork(catalogue, id);
    return work === undefined
      ? json({ error: `Paper with id ${id} not found` }, 404)
      : json(picked(record(work), fields));
  };
}

function batch(
  catalogue: CatalogueIndex,
  { method, body }: SimulatedRequest,
  fields: readonly string[],
): SimulatedReply {
  if (method !== "POST") return json({ error: "Method not allowed" }, 405);
  const ids = idsOf(body);
  if (ids === undefined || ids.length > 500) return json({ error: "ids: from 1 to 500 are allowed" }, 400);
  return json(
    ids.map(id => {
      const work = findWork(catalogue, id);
      return work === undefined ? null : picked(record(work), fields);
    }),
  );
}

function idsOf(body: string): readonly string[] | undefined {
  try {
    const { ids } = JSON.parse(body);
    return Array.isArray(ids) && ids.every(id => typeof id === "string") ? ids : undefined;
  } catch {
    return undefined;
  }
}

function findWork(catalogue: CatalogueIndex, id: string): SimulatedWork | undefined {
  const [, kind = "", name = ""] = /^(DOI|ARXIV|PMID|PMCID):(.+)$/i.exec(id) ?? [];
  const work = findByKind(catalogue, kind.toLowerCase(), name);
  return work?.registrar === "none" ? undefined : work;
}

function findByKind(catalogue: CatalogueIndex, kind: string, name: string): SimulatedWork | undefined {
  switch (kind) {
    case "doi":
      return catalogue.byDoi(name);
    case "arxiv":
    case "pmid":
      return catalogue.by(kind, name);
    case "pmcid":
      return catalogue.by("pmcid", `PMC${name.replace(/^PMC/i, "")}`);
    default:
      return undefined;
  }
}

function record(work: SimulatedWork): Record<string, unknown> {
  const { ids, title, year, authors } = work;
  const [copy] = copiesVia(work, "semantic_scholar");
  const paperId = digest("sha1", ids.doi ?? title);
  return {
    paperId,
    externalIds: {
      DOI: ids.doi,
      CorpusId: work.record,
      ...(ids.arxiv === undefined ? {} : { ArXiv: ids.arxiv }),
      ...(ids.pmid === undefined ? {} : { PubMed: ids.pmid }),
      ...(ids.pmcid === undefined ? {} : { PubMedCentral: ids.pmcid.slice(3) }),
    },
    url: `https://www.semanticscholar.org/paper/${paperId}`,
    title,
    venue: "Journal of Simulated Findings",
    year,
    isOpenAccess: copy !== undefined,
    // Without a copy the URL is an empty string, not null.
    openAccessPdf:
      copy === undefined
        ? { url: "", status: null, license: null }
        : { url: copy.url, status: copy.hostType === "repository" ? "GREEN" : "GOLD", license: copy.licence },
    authors: authors.map((name, index) => ({ authorId: String(1000 + index), name })),
  };
}

function picked(item: Record<string, unknown>, fields: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(item).filter(([name]) => fields.includes(name)));
}

import { digest } from "../article-file.ts";
import type { SimulatedWork } from "../catalogue.ts";
import { type CatalogueIndex, isKnownTo } from "../catalogue-index.ts";
import { decoded, json, type SimulatedReply, type SimulatedRequest, type SimulatedService } from "../exchange.ts";
import { fileReply } from "../file-reply.ts";
import { supplementTable } from "../other-files.ts";
import { pages } from "./pages.ts";

/** The wrong checksum in the records of the scenario wrong-checksum. */
const WRONG_MD5 = "00000000000000000000000000000bad";

/** zenodo.org: records, search, and files. */
export function zenodo(catalogue: CatalogueIndex): SimulatedService {
  const pageService = pages(catalogue);
  return request => {
    if (request.path.replace(/\/$/, "") === "/api/records") return search(catalogue, request);
    const [, tableId = ""] = /^(?:\/api)?\/records\/(\d+)\/files\/table\.csv(?:\/content)?$/.exec(request.path) ?? [];
    const tableWork = catalogue.by("record", tableId);
    if (tableWork !== undefined && isKnownTo(tableWork, "zenodo"))
      return fileReply(request, { body: supplementTable(tableWork), type: "text/csv", takesRanges: true });
    const [, id] = /^\/api\/records\/(\d+)$/.exec(request.path) ?? [];
    if (id === undefined) return pageService(request);
    const work = catalogue.by("record", id);
    if (work === undefined || !isKnownTo(work, "zenodo")) {
      return json({ status: 404, message: "The persistent identifier does not exist." }, 404);
    }
    return json(record(work), 200, { etag: 'W/"1"' });
  };
}

function search(catalogue: CatalogueIndex, { query }: SimulatedRequest): SimulatedReply {
  const [, doi = ""] = /(?:doi|conceptdoi):"?([^"\s]+)"?/.exec(decoded(query.get("q") ?? "") ?? "") ?? [];
  const work = catalogue.byDoi(doi);
  const hits = work !== undefined && isKnownTo(work, "zenodo") ? [record(work)] : [];
  return json({ hits: { hits, total: hits.length }, aggregations: {}, links: {} });
}

function record(work: SimulatedWork) {
  const { ids, title, year, authors, file, scenario } = work;
  const self = `https://zenodo.org/api/records/${work.record}`;
  return {
    id: work.record,
    recid: String(work.record),
    conceptrecid: String(work.record - 1),
    doi: ids.doi,
    doi_url: `https://doi.org/${ids.doi}`,
    title,
    created: `${year}-04-01T08:00:00+00:00`,
    modified: `${year}-04-01T08:00:00+00:00`,
    metadata: {
      title,
      doi: ids.doi,
      publication_date: `${year}-04-01`,
      access_right: "open",
      license: { id: "cc-by-4.0" },
      creators: authors.map(name => ({ name })),
      resource_type: { title: "Preprint", type: "publication", subtype: "preprint" },
    },
    files: [
      {
        id: "paper",
        key: "paper.pdf",
        size: file.bytes,
        checksum: `md5:${scenario === "wrong-checksum" ? WRONG_MD5 : file.md5}`,
        links: { self: `${self}/files/paper.pdf/content` },
      },
      {
        id: "table",
        key: "table.csv",
        size: supplementTable(work).length,
        checksum: `md5:${digest("md5", supplementTable(work))}`,
        links: { self: `${self}/files/table.csv/content` },
      },
    ],
    links: { self, self_html: `https://zenodo.org/records/${work.record}`, latest: self },
    state: "done",
    submitted: true,
    revision: 1,
  };
}

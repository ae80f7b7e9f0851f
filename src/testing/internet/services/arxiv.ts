import type { SimulatedWork } from "../catalogue.ts";
import type { CatalogueIndex } from "../catalogue-index.ts";
import {
  escapeXml,
  html,
  redirect,
  reply,
  type SimulatedReply,
  type SimulatedRequest,
  type SimulatedService,
} from "../exchange.ts";
import { fileReply } from "../file-reply.ts";
import { latexSource } from "../other-files.ts";
import { pageReply } from "../page.ts";

/** export.arxiv.org and arxiv.org: the Atom API, abstracts, files and sources, the same on both. */
export function arxiv(catalogue: CatalogueIndex): SimulatedService {
  return request => {
    if (request.path === "/api/query") return query(catalogue, request);
    if (!request.isTls) return redirect(`https://${request.host}${request.path}`, 301);
    const [, sourceId] = /^\/(?:src|e-print)\/(.+?)(?:v\d+)?$/.exec(request.path) ?? [];
    const submitted = sourceId === undefined ? undefined : catalogue.by("arxiv", sourceId);
    if (submitted !== undefined)
      return fileReply(request, { body: latexSource(submitted), type: "application/gzip", headers: ATTACHMENT });
    // The URL of a file may contain a version and end with .pdf.
    const path = request.path.replace(/^(\/(?:pdf|abs)\/.+?)(?:v\d+)?(?:\.pdf)?$/, "$1");
    const page = catalogue.pages.get(`${request.host}${path}`) ?? catalogue.pages.get(`arxiv.org${path}`);
    return page === undefined ? html("404 Not Found", "<h1>404 Not Found</h1>", 404) : pageReply(request, page);
  };
}

const ATTACHMENT = { "content-disposition": 'attachment; filename="source.gz"' };

const NEW_ID = /^\d{4}\.\d{4,5}(?:v\d+)?$/;
const OLD_ID = /^[a-z-]+(?:\.[A-Z]{2})?\/\d{7}(?:v\d+)?$/;

function query(catalogue: CatalogueIndex, { query: parameters, wallMs }: SimulatedRequest): SimulatedReply {
  const ids = (parameters.get("id_list") ?? "").split(",").filter(id => id !== "");
  const bad = ids.find(id => !NEW_ID.test(id) && !OLD_ID.test(id));
  if (bad !== undefined) return feed(parameters, wallMs, [errorEntry(bad)], 1, 400);
  const words = (parameters.get("search_query") ?? "")
    .replace(/\b(?:all|ti):/g, "")
    .toLowerCase()
    .split(/[\s+"]+/);
  const maxResults = Number(parameters.get("max_results") ?? 10);
  const start = Number(parameters.get("start") ?? 0);
  const found =
    ids.length > 0
      ? ids.flatMap(id => catalogue.by("arxiv", id.replace(/v\d+$/, "")) ?? [])
      : catalogue.works.filter(
          ({ ids: { arxiv: id }, title }) => id && words.every(word => title.toLowerCase().includes(word)),
        );
  const entries = found.slice(start, start + maxResults).map(entry);
  return feed(parameters, wallMs, entries, found.length, 200);
}

function feed(
  parameters: URLSearchParams,
  wallMs: number,
  entries: readonly string[],
  total: number,
  status: number,
): SimulatedReply {
  const body = `<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:arxiv="http://arxiv.org/schemas/atom" xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">
  <id>https://arxiv.org/api/simulated</id>
  <title>arXiv Query: ${escapeXml(parameters.toString())}</title>
  <updated>${new Date(wallMs).toISOString()}</updated>
  <opensearch:itemsPerPage>${Number(parameters.get("max_results") ?? 10)}</opensearch:itemsPerPage>
  <opensearch:totalResults>${total}</opensearch:totalResults>
  <opensearch:startIndex>${Number(parameters.get("start") ?? 0)}</opensearch:startIndex>
${entries.join("")}</feed>
`;
  return reply(body, "application/atom+xml; charset=utf-8", status, {});
}

function entry({ ids, title, year, authors }: SimulatedWork): string {
  const names = authors.map(name => `    <author><name>${escapeXml(name)}</name></author>\n`).join("");
  const doi =
    ids.doi === undefined || ids.doi.startsWith("10.48550/")
      ? ""
      : `    <arxiv:doi>${escapeXml(ids.doi)}</arxiv:doi>\n`;
  return `  <entry>
    <id>http://arxiv.org/abs/${ids.arxiv}v1</id>
    <title>${escapeXml(title)}</title>
    <updated>${year}-04-01T12:00:00Z</updated>
    <published>${year}-04-01T12:00:00Z</published>
    <summary>A work of the simulated internet.</summary>
${names}${doi}    <link href="https://arxiv.org/abs/${ids.arxiv}v1" rel="alternate" type="text/html"/>
    <link href="https://arxiv.org/pdf/${ids.arxiv}v1" rel="related" type="application/pdf" title="pdf"/>
    <arxiv:primary_category term="q-bio.PE"/>
  </entry>
`;
}

function errorEntry(id: string): string {
  return `  <entry>
    <id>https://arxiv.org/api/errors#incorrect_id_format_for_${escapeXml(id)}</id>
    <title>Error</title>
    <summary>incorrect id format for ${escapeXml(id)}</summary>
  </entry>
`;
}

import { digest } from "../article-file.ts";
import type { SimulatedWork } from "../catalogue.ts";
import { type CatalogueIndex, isKnownTo } from "../catalogue-index.ts";
import {
  escapeXml,
  html,
  json,
  type SimulatedReply,
  type SimulatedRequest,
  type SimulatedService,
  xml,
} from "../exchange.ts";
import { fileReply } from "../file-reply.ts";
import { supplementArchive } from "../other-files.ts";
import { pageReply } from "../page.ts";

const BUCKET = "pmc-oa-opendata";

/** pmc.ncbi.nlm.nih.gov: the identifier converter, and article pages behind a proof-of-work challenge. */
export function pmcTools(catalogue: CatalogueIndex): SimulatedService {
  return request => {
    if (request.path === "/tools/idconv/api/v1/articles/") return convert(catalogue, request);
    if (/^\/articles\/PMC\d+\/pdf\//.test(request.path)) {
      return html("Preparing to download ...", '<script>document.cookie = "cloudpmc-viewer-pow=…"</script>');
    }
    return html("Page not found", "<h1>Page not found</h1>", 404);
  };
}

function convert(catalogue: CatalogueIndex, { query }: SimulatedRequest): SimulatedReply {
  const ids = (query.get("ids") ?? "").split(",").filter(id => id !== "");
  if (ids.length === 0 || ids.length > 200)
    return json({ status: "error", message: "ids: from 1 to 200 are allowed" }, 400);
  const records = ids.map(id => {
    const work = catalogue.byDoi(id) ?? catalogue.by("pmcid", id.toUpperCase()) ?? catalogue.by("pmid", id);
    if (work?.ids.pmcid === undefined)
      return { "requested-id": id, status: "error", errmsg: "Identifier not found in PMC" };
    const { pmcid, pmid, doi } = work.ids;
    return { "requested-id": id, pmcid, pmid: Number(pmid), doi, versions: [{ pmcid: `${pmcid}.1`, current: true }] };
  });
  return json({ status: "ok", "response-date": "2026-11-16 00:00:00", request: { ids, format: "json" }, records });
}

/** The bucket that replaced the OA service and its FTP server in August 2026. */
export function pmcFiles(catalogue: CatalogueIndex): SimulatedService {
  return request => {
    if (request.path === "/") return listVersions(catalogue, request);
    const [, articleKey = ""] = /^\/(PMC\d+)\.1\/supplement\.zip$/.exec(request.path) ?? [];
    const supplemented = catalogue.by("pmcid", articleKey);
    if (supplemented !== undefined && isKnownTo(supplemented, "pmc"))
      return objectReply(request, supplementArchive(supplemented), "application/zip");
    const [, key = "", extension] =
      /^\/(?:metadata|PMC\d+\.\d+)\/(PMC\d+\.\d+)\.(json|xml|txt|pdf)$/.exec(request.path) ?? [];
    const work = catalogue.by("pmcid", key.replace(/\.1$/, ""));
    if (work === undefined || !isKnownTo(work, "pmc")) return noSuchKey(request.path);
    if (extension === "json") return objectReply(request, JSON.stringify(metadata(work)), "application/json");
    if (extension === "xml") return objectReply(request, jats(work), "application/xml");
    if (extension === "txt") return objectReply(request, `${work.title}\n`, "text/plain");
    const page = catalogue.pages.get(`${request.host}${request.path}`);
    return page === undefined ? noSuchKey(request.path) : pageReply(request, page);
  };
}

function listVersions(catalogue: CatalogueIndex, { query }: SimulatedRequest): SimulatedReply {
  const prefix = query.get("prefix") ?? "";
  const work = catalogue.by("pmcid", prefix.replace(/\.$/, ""));
  const isListed = work !== undefined && isKnownTo(work, "pmc");
  const found = isListed ? `<CommonPrefixes><Prefix>${work.ids.pmcid}.1/</Prefix></CommonPrefixes>` : "";
  return xml(
    `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${BUCKET}</Name><Prefix>${escapeXml(prefix)}</Prefix><KeyCount>${isListed ? 1 : 0}</KeyCount><MaxKeys>1000</MaxKeys><Delimiter>/</Delimiter><IsTruncated>false</IsTruncated>${found}</ListBucketResult>`,
  );
}

function noSuchKey(path: string): SimulatedReply {
  return xml(
    `<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message><Key>${escapeXml(path.slice(1))}</Key></Error>`,
    404,
  );
}

function objectReply(request: SimulatedRequest, body: string | Buffer, type: string): SimulatedReply {
  return fileReply(request, { body: Buffer.from(body), type, etag: digest("md5", body), takesRanges: true });
}

function metadata(work: SimulatedWork) {
  const { ids, title, file } = work;
  const key = `${ids.pmcid}.1`;
  const s3Url = (extension: string, md5: string) => `s3://${BUCKET}/${key}/${key}.${extension}?md5=${md5}`;
  return {
    pmcid: ids.pmcid,
    version: 1,
    pmid: Number(ids.pmid),
    doi: ids.doi,
    title,
    is_pmc_openaccess: true,
    is_manuscript: false,
    is_historical_ocr: false,
    is_retracted: false,
    license_code: "CC BY",
    pdf_url: s3Url("pdf", file.md5),
    xml_url: s3Url("xml", digest("md5", jats(work))),
    text_url: s3Url("txt", digest("md5", `${title}\n`)),
    // A figure is part of the article; the archive is a supplement.
    media_urls: [
      `s3://${BUCKET}/${key}/figure1.jpg?md5=${digest("md5", "figure")}`,
      `s3://${BUCKET}/${key}/supplement.zip?md5=${digest("md5", supplementArchive(work))}`,
    ],
  };
}

export function jats({ ids, title }: SimulatedWork): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n<article article-type="research-article"><front><article-meta><article-id pub-id-type="doi">${escapeXml(ids.doi ?? "")}</article-id><title-group><article-title>${escapeXml(title)}</article-title></title-group></article-meta></front><body><p>A work of the simulated internet.</p></body></article>\n`;
}

/** eutils.ncbi.nlm.nih.gov: the PubMed id of a DOI, or with `db=pmc` its PMC id. */
export function eutils(catalogue: CatalogueIndex): SimulatedService {
  return ({ path, query }) => {
    if (path !== "/entrez/eutils/esearch.fcgi") return json({ error: "Invalid uid or utility" }, 400);
    const work = catalogue.byDoi((query.get("term") ?? "").replace(/\[.*\]$/, ""));
    const { pmid, pmcid } = work?.ids ?? {};
    const id = query.get("db") === "pmc" ? pmcid?.slice(3) : pmid;
    const idlist = id === undefined ? [] : [id];
    return json({
      header: { type: "esearch", version: "0.3" },
      esearchresult: { count: String(idlist.length), retmax: "20", retstart: "0", idlist },
    });
  };
}

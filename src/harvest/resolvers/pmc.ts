import { z } from "zod";
import type { Work } from "../work.ts";
import { findingForStatus, findingOf, idsFrom, matchesDoi, md5, type RawCandidate, unreadable } from "./finding.ts";
import { lenientText, listOf, RESPONSE_CHARS_MAX, readJson, text } from "./json-response.ts";
import { eachElement } from "./markup.ts";
import { urlWithQuery } from "./request-url.ts";
import type { Finding, Resolver, ResolverRequest, ResolverResponse } from "./resolver.ts";

const BUCKET = "https://pmc-oa-opendata.s3.amazonaws.com";
const CONVERTER = "https://pmc.ncbi.nlm.nih.gov/tools/idconv/api/v1/articles/";

const converted = z.object({
  records: listOf(
    z.object({ pmcid: text, pmid: z.union([z.string(), z.number()]).nullish(), doi: text, status: text }),
  ),
});

const metadata = z.object({
  pmcid: z.string(),
  pmid: z.union([z.string(), z.number()]).nullish(),
  doi: text,
  title: lenientText,
  citation: lenientText,
  is_manuscript: z.boolean().nullish().catch(undefined),
  license_code: lenientText,
  pdf_url: text,
  xml_url: text,
});

/**
 * The open-access files of PubMed Central, as they lie in its bucket since August 2026: a PMCID has versions, a version
 * has a record, the record names the files with their MD5. A work without a PMCID is looked up in the converter first.
 * Article pages are never asked: systematic download is forbidden there.
 */
export const pmc: Resolver = {
  name: "pmc",
  needs: [],
  requestFor({ ids: { pmcid, pmid, doi } }) {
    if (pmcid !== undefined) return versionsOf(pmcid);
    if (pmid !== undefined) return convert(pmid, "pmid");
    // The converter takes a list, and has no way to write a comma inside a name.
    return doi === undefined || doi.includes(",") ? undefined : convert(doi, "doi");
  },
  read(response, work) {
    const { pathname = "", hostname } = URL.parse(response.url) ?? {};
    if (hostname === "pmc.ncbi.nlm.nih.gov") return readConverted(response, work);
    if (pathname === "/") return readVersions(response, work);
    return readMetadata(response, work);
  },
};

function convert(id: string, idtype: "doi" | "pmid"): ResolverRequest {
  return { url: urlWithQuery(CONVERTER, { ids: id, idtype, format: "json" }), role: "metadata" };
}

function versionsOf(pmcid: string): ResolverRequest {
  const query = { "list-type": "2", prefix: `${pmcid}.`, delimiter: "/" };
  return { url: urlWithQuery(`${BUCKET}/`, query), role: "metadata" };
}

function readConverted(response: ResolverResponse, work: Work): Finding {
  // What it does not know at all, or not as this type, is a 400 or 404 of its own.
  if (response.status === 400) return { kind: "none", reason: "unknown-work" };
  const statusFinding = findingForStatus(response);
  if (statusFinding !== undefined) return statusFinding;
  const read = readJson(response, converted);
  if ("failure" in read) return read.failure;
  const record = read.data.records.find(
    ({ pmid, doi }) => String(pmid ?? "") === work.ids.pmid || matchesDoi(work, doi),
  );
  const { pmcid } = idsFrom({ pmcid: record?.pmcid });
  return pmcid === undefined ? { kind: "none", reason: "unknown-work" } : { kind: "ask", request: versionsOf(pmcid) };
}

function readVersions(response: ResolverResponse, { ids }: Work): Finding {
  const statusFinding = findingForStatus(response);
  if (statusFinding !== undefined) return statusFinding;
  let isList = false;
  let newest: { readonly pmcid: string; readonly version: number } | undefined;
  eachElement(response.body, "xml", { chars: RESPONSE_CHARS_MAX }, ({ name, parent, text: prefix }) => {
    if (name === "ListBucketResult") isList = true;
    const [, pmcid, digits] = /^(PMC\d+)\.(\d{1,4})\/$/.exec(prefix) ?? [];
    if (name !== "Prefix" || parent !== "CommonPrefixes" || pmcid === undefined) return;
    if (ids.pmcid !== undefined && pmcid !== ids.pmcid) return;
    const version = Number(digits);
    if (newest === undefined || version > newest.version) newest = { pmcid, version };
  });
  if (!isList) return unreadable(response, "something that is not a list of the bucket");
  // Most of PMC may be read, and not taken away: the bucket has the part that may.
  if (newest === undefined) return { kind: "none", reason: "not-open" };
  const { pmcid, version } = newest as { readonly pmcid: string; readonly version: number };
  return { kind: "ask", request: { url: `${BUCKET}/metadata/${pmcid}.${version}.json`, role: "metadata" } };
}

function readMetadata(response: ResolverResponse, work: Work): Finding {
  // S3 says 403 for what is not there to those who may not list.
  if (response.status === 403) return { kind: "none", reason: "not-open" };
  const statusFinding = findingForStatus(response);
  if (statusFinding !== undefined) return statusFinding;
  const read = readJson(response, metadata);
  if ("failure" in read) return read.failure;
  const { data } = read;
  const stated = {
    version: data.is_manuscript === true ? ("accepted" as const) : ("published" as const),
    licence: data.license_code,
  };
  return findingOf(
    work,
    [
      { kind: "pdf", ...stated, ...fileOf(data.pdf_url) },
      { kind: "xml", ...stated, ...fileOf(data.xml_url) },
    ],
    {
      noneReason: "no-copy",
      ids: idsFrom(data),
      title: data.title,
      year: /\b(1[89]|20)\d\d\b/.exec(data.citation ?? "")?.[0],
    },
  );
}

/** `s3://pmc-oa-opendata/PMC1.1/PMC1.1.pdf?md5=…` as an address that anybody can ask. */
function fileOf(s3: string | null | undefined): Pick<RawCandidate, "url" | "checksum"> {
  const [, path, hex] = /^s3:\/\/pmc-oa-opendata\/([^?#]+)(?:\?md5=([0-9a-f]{32}))?/i.exec(s3 ?? "") ?? [];
  return { url: path && `${BUCKET}/${path}`, checksum: md5(hex) };
}

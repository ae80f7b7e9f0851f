import { z } from "zod";
import type { Work } from "../work.ts";
import { findingForBatchStatus, isPlainDoi } from "./batch-findings.ts";
import { isFigure, SUPPLEMENT } from "./file-names.ts";
import {
  findingForStatus,
  findingOf,
  idsFrom,
  matchesDoi,
  md5Checksum,
  type RawCandidate,
  unreadable,
} from "./finding.ts";
import { lenientText, listOf, optionalListOf, optionalText, RESPONSE_CHARS_MAX, readJson } from "./json-response.ts";
import { eachElement } from "./markup.ts";
import { urlWithQuery } from "./request-url.ts";
import type { Finding, Resolver, ResolverRequest, ResolverResponse } from "./resolver.ts";

const BUCKET = "https://pmc-oa-opendata.s3.amazonaws.com";
const CONVERTER = "https://pmc.ncbi.nlm.nih.gov/tools/idconv/api/v1/articles/";
/** 200 are allowed; with more than 75 long DOIs the URL would exceed 8 kB. */
const BATCH_MAX = 75;

const converted = z.object({
  records: listOf(
    z.object({
      pmcid: optionalText,
      pmid: z.union([z.string(), z.number()]).nullish(),
      doi: optionalText,
    }),
  ),
});

type ConvertedRecord = z.infer<typeof converted>["records"][number];

const metadata = z.object({
  pmcid: z.string(),
  pmid: z.union([z.string(), z.number()]).nullish(),
  doi: optionalText,
  title: lenientText,
  citation: lenientText,
  is_manuscript: z.boolean().nullish().catch(undefined),
  is_retracted: z.boolean().nullish().catch(undefined),
  license_code: lenientText,
  pdf_url: optionalText,
  xml_url: optionalText,
  media_urls: optionalListOf(z.string()).catch([]),
});

/**
 * The open-access files of PubMed Central in its S3 bucket (layout since August 2026): a PMCID has versions, a version
 * has a metadata record, and the record lists the files with their MD5. A DOI or PMID is converted to a PMCID first.
 * Article pages are never requested: PMC forbids systematic download of pages.
 */
export const pmc: Resolver = {
  name: "pmc",
  needs: [],
  isRepository: true,
  offers: ["xml", "supplement"],
  requestFor({ ids: { pmcid, pmid, doi } }) {
    if (pmcid !== undefined) return versionsRequest(pmcid);
    if (pmid !== undefined) return converterRequest(pmid, "pmid");
    // The converter takes a comma-separated list and cannot escape a comma in a DOI.
    return doi === undefined || doi.includes(",") ? undefined : converterRequest(doi, "doi");
  },
  batch: {
    maxWorks: BATCH_MAX,
    groupOf({ ids: { pmcid, pmid, doi } }) {
      if (pmcid !== undefined) return undefined;
      return pmid === undefined ? (isPlainDoi(doi ?? "") ? "doi" : undefined) : "pmid";
    },
    requestFor(works) {
      const names = works.map(({ ids: { pmid, doi } }) => pmid ?? doi ?? "");
      return converterRequest(names.join(","), works[0]?.ids.pmid === undefined ? "doi" : "pmid");
    },
    parse(response, works) {
      const records = findingForBatchStatus(response, "service") ?? recordsIn(response);
      return Array.isArray(records) ? works.map(work => convertedFinding(records, work)) : records;
    },
  },
  parse(response, work) {
    const { pathname = "", hostname } = URL.parse(response.url) ?? {};
    if (hostname === "pmc.ncbi.nlm.nih.gov") return parseConverted(response, work);
    if (pathname === "/") return parseVersions(response, work);
    return parseMetadata(response, work);
  },
};

function converterRequest(id: string, idtype: "doi" | "pmid"): ResolverRequest {
  return { url: urlWithQuery(CONVERTER, { ids: id, idtype, format: "json" }), role: "metadata" };
}

function versionsRequest(pmcid: string): ResolverRequest {
  const query = { "list-type": "2", prefix: `${pmcid}.`, delimiter: "/" };
  return { url: urlWithQuery(`${BUCKET}/`, query), role: "metadata" };
}

function parseConverted(response: ResolverResponse, work: Work): Finding {
  // The converter returns 400 or 404 for an unknown id; `findingForStatus` handles 404.
  if (response.status === 400) return { kind: "none", reason: "unknown-work" };
  const records = findingForStatus(response, "service") ?? recordsIn(response);
  return Array.isArray(records) ? convertedFinding(records, work) : records;
}

function recordsIn(response: ResolverResponse): ConvertedRecord[] | Finding {
  const parsed = readJson(response, converted);
  return "failure" in parsed ? parsed.failure : parsed.data.records;
}

function convertedFinding(records: readonly ConvertedRecord[], work: Work): Finding {
  const record = records.find(({ pmid, doi }) => String(pmid ?? "") === work.ids.pmid || matchesDoi(work, doi));
  const { pmcid } = idsFrom({ pmcid: record?.pmcid });
  return pmcid === undefined
    ? { kind: "none", reason: "unknown-work" }
    : { kind: "follow-up", request: versionsRequest(pmcid) };
}

function parseVersions(response: ResolverResponse, { ids }: Work): Finding {
  const statusFinding = findingForStatus(response);
  if (statusFinding !== undefined) return statusFinding;
  let isList = false;
  let newest: { readonly pmcid: string; readonly version: number } | undefined;
  eachElement(response.body, "xml", RESPONSE_CHARS_MAX, ({ name, parent, text: prefix }) => {
    if (name === "ListBucketResult") isList = true;
    const [, pmcid, digits] = /^(PMC\d+)\.(\d{1,4})\/$/.exec(prefix) ?? [];
    if (name !== "Prefix" || parent !== "CommonPrefixes" || pmcid === undefined) return;
    if (ids.pmcid !== undefined && pmcid !== ids.pmcid) return;
    const version = Number(digits);
    if (newest === undefined || version > newest.version) newest = { pmcid, version };
  });
  if (!isList) return unreadable(response, "no S3 bucket listing");
  // The bucket has only the part of PMC that may be downloaded.
  if (newest === undefined) return { kind: "none", reason: "not-open" };
  const { pmcid, version } = newest as { readonly pmcid: string; readonly version: number };
  return { kind: "follow-up", request: { url: `${BUCKET}/metadata/${pmcid}.${version}.json`, role: "metadata" } };
}

function parseMetadata(response: ResolverResponse, work: Work): Finding {
  // S3 returns 403 for a missing object if the client may not list the bucket.
  if (response.status === 403) return { kind: "none", reason: "not-open" };
  const statusFinding = findingForStatus(response);
  if (statusFinding !== undefined) return statusFinding;
  const parsed = readJson(response, metadata);
  if ("failure" in parsed) return parsed.failure;
  const { data } = parsed;
  const stated = {
    version: data.is_manuscript === true ? ("accepted" as const) : ("published" as const),
    licence: data.license_code,
  };
  return findingOf(
    work,
    [
      { kind: "pdf", ...stated, ...fileOf(data.pdf_url) },
      { kind: "xml", ...stated, ...fileOf(data.xml_url) },
      ...data.media_urls
        .map(fileOf)
        .filter(({ url }) => !isFigure(url ?? ""))
        .map(file => ({ ...SUPPLEMENT, ...stated, ...file })),
    ],
    {
      noneReason: "no-copy",
      ids: idsFrom(data),
      metadata: {
        title: data.title,
        year: yearOfCitation(data.citation),
        licence: data.license_code,
        isRetracted: data.is_retracted,
      },
    },
  );
}

/**
 * The year in `ESMO Open. 2023 Feb 24;8(2):100788.`: it follows the name of the journal. The citation of a manuscript may
 * begin with the date when it became available: `Available in PMC 2011 Mar 1. Published in final edited form as: …`.
 */
function yearOfCitation(citation: string | null | undefined): string | undefined {
  const published = (citation ?? "").slice(0, 2000).replace(/^.*?final edited form as:/is, "");
  return /\.\s((?:1[89]|20)\d\d)\b/.exec(published.replace(/available in pmc\s[^.;]*[.;]/i, ""))?.[1];
}

/** Converts `s3://pmc-oa-opendata/PMC1.1/PMC1.1.pdf?md5=…` to an https URL and its checksum. */
function fileOf(s3: string | null | undefined): Pick<RawCandidate, "url" | "checksum"> {
  const [, path, hex] = /^s3:\/\/pmc-oa-opendata\/([^?#]+)(?:\?md5=([0-9a-f]{32}))?/i.exec(s3 ?? "") ?? [];
  return { url: path && `${BUCKET}/${path}`, checksum: md5Checksum(hex) };
}

/** Builds the findings of resolvers: checks URLs, recognises identifiers, removes duplicates and limits the number. */

import { isTransientStatus } from "../attempt-failure.ts";
import { canonicalArxivId, withoutVersion } from "../identifiers/arxiv-id.ts";
import { canonicalDoi } from "../identifiers/doi.ts";
import { idsOfDoi, idsOfUrl, pmcidOf, pmidOf } from "../identifiers/identifiers.ts";
import { canonicalWebUrl } from "../identifiers/web-url.ts";
import type { Work, WorkIds } from "../work.ts";
import { ranked } from "./candidates.ts";
import { metadataOf, type RawMetadata } from "./raw-metadata.ts";
import type { Candidate, Finding, ResolverResponse } from "./resolver.ts";

/** Articles and pages of one response. A resolution tries at most 60 URLs of all responses. */
const ARTICLES_MAX = 25;
/** Sources and supplements of one response. A resolution downloads at most 300 of all responses, and says so. */
const OTHER_FILES_MAX = 500;

/** A candidate as the service returns it. An invalid URL is ignored. */
export interface RawCandidate extends Omit<Candidate, "url" | "licence"> {
  readonly url: string | null | undefined;
  readonly licence?: string | null | undefined;
}

export type ResolverFailure = Extract<Finding, { kind: "failure" }>;

export interface FindingDetails {
  /** The reason if no candidate is left. */
  readonly noneReason: "unknown-work" | "no-copy" | "not-open";
  readonly ids?: WorkIds | undefined;
  readonly metadata?: RawMetadata | undefined;
}

export function findingOf(work: Work, rawCandidates: readonly RawCandidate[], details: FindingDetails): Finding {
  const rawArticles = rawCandidates.filter(isArticle).slice(0, 4 * ARTICLES_MAX);
  const rawOthers = rawCandidates.filter(raw => !isArticle(raw)).slice(0, OTHER_FILES_MAX);
  const all = [...rawArticles, ...rawOthers].map(rawCandidate => classified(rawCandidate, work));
  const ids = Object.assign({}, ...all.map(each => each.ids), details.ids) as WorkIds;
  const best = ranked(all.flatMap(({ candidate }) => candidate ?? []));
  const articles = best.filter(isArticle);
  const metadata = metadataOf(details.metadata ?? {});
  const facts = { ...(Object.keys(ids).length > 0 && { ids }), ...(metadata && { metadata }) };
  // Sources and supplements are of no use without the article.
  if (articles.length === 0) return { kind: "none", reason: details.noneReason, ...facts };
  const others = best.filter(candidate => !isArticle(candidate));
  return { kind: "found", candidates: [...articles.slice(0, ARTICLES_MAX), ...others], ...facts };
}

function isArticle({ role = "article" }: Pick<Candidate, "role">): boolean {
  return role === "article";
}

/**
 * Turns URLs of some hosts into identifiers. PMC forbids programs to download its pages and has its files on another host,
 * so a PMC URL gives a PMCID for the resolver `pmc`. The same applies to PubMed, to Europe PMC, which has no rendered PDFs
 * since March 2026, and to arXiv, whose file URL follows from the id.
 */
function classified(
  rawCandidate: RawCandidate,
  work: Work,
): { readonly candidate?: Candidate; readonly ids?: WorkIds } {
  const url = canonicalWebUrl(rawCandidate.url);
  // The URL of a source or supplement contains the identifier, and is not the article.
  if (url !== undefined && !isArticle(rawCandidate)) return { candidate: candidateOf(rawCandidate, url) };
  const idsInUrl = url === undefined ? "" : idsOfUrl(url);
  if (url === undefined || typeof idsInUrl === "string") return {};
  const { pmcid, pmid, openalex, arxiv, doi } = idsInUrl;
  // `landing_page` requests the DOI itself.
  if (idsInUrl.url === undefined && doi !== undefined && doi === work.ids.doi) return {};
  if (arxiv !== undefined)
    return {
      candidate: candidateOf(rawCandidate, `https://arxiv.org/pdf/${arxiv}`, "pdf"),
      ids: { arxiv: withoutVersion(arxiv) },
    };
  if (pmcid !== undefined) return { ids: { pmcid } };
  if (pmid !== undefined) return { ids: { pmid } };
  if (openalex !== undefined) return { ids: { openalex } };
  // figshare.com answers with 202 and a challenge; its API sends the file.
  const file = /^https?:\/\/(?:[\w-]+\.)*figshare\.com\/ndownloader\/(?:articles\/\d+\/)?files\/(\d+)/.exec(url)?.[1];
  return { candidate: candidateOf(rawCandidate, file === undefined ? url : figshareFile(file)) };
}

export function figshareFile(id: number | string): string {
  return `https://api.figshare.com/v2/file/download/${id}`;
}

function candidateOf(raw: RawCandidate, url: string, kind = raw.kind): Candidate {
  const { version, licence, checksum, bytes, role, name } = raw;
  return {
    url,
    kind,
    ...(version === undefined ? {} : { version }),
    ...(licence ? { licence: licence.slice(0, 200) } : {}),
    ...(checksum === undefined ? {} : { checksum }),
    ...(role === undefined ? {} : { role }),
    ...(name === undefined || isArticle(raw) ? {} : { name: name.slice(-100) }),
    ...(bytes === undefined || !Number.isSafeInteger(bytes) || bytes < 0 ? {} : { bytes }),
  };
}

/** Identifiers of a service in canonical form, without invalid ones. */
export function idsFrom(names: {
  readonly doi?: string | null | undefined;
  readonly pmid?: string | number | null | undefined;
  readonly pmcid?: string | null | undefined;
  readonly arxiv?: string | null | undefined;
}): WorkIds {
  const pmid = pmidOf(String(names.pmid ?? ""));
  const pmcid = pmcidOf(names.pmcid ?? "");
  const arxiv = canonicalArxivId(names.arxiv ?? "");
  return {
    ...(pmid === undefined ? {} : { pmid }),
    ...(pmcid === undefined ? {} : { pmcid }),
    ...(arxiv === undefined ? {} : { arxiv }),
    ...idsOfDoi((names.doi ?? "").replace(/^https?:\/\/(?:dx\.)?doi\.org\//i, "")),
  };
}

/** Whether a result has the DOI of the work: searches also return similar DOIs. */
export function matchesDoi(work: Work, text: string | null | undefined): boolean {
  return work.ids.doi !== undefined && canonicalDoi(text ?? "") === work.ids.doi;
}

/** Parses `md5:0123…` or the digits alone; undefined for any other text. */
export function md5Checksum(text: string | null | undefined): Candidate["checksum"] {
  const hex = /^(?:md5:)?([0-9a-f]{32})$/i.exec(text ?? "")?.[1];
  return hex === undefined ? undefined : { algorithm: "md5", hex: hex.toLowerCase() };
}

/** Parses the version names of OpenAlex, Unpaywall and Crossref. */
export function versionOf(text: string | null | undefined): Candidate["version"] {
  if (text === "publishedVersion" || text === "vor") return "published";
  if (text === "acceptedVersion" || text === "am") return "accepted";
  return text === "submittedVersion" ? "submitted" : undefined;
}

/**
 * The finding for an error status, for services that use status codes as HTTP defines them; undefined for 2xx.
 * @param scope `service` if 401, 402 and 403 of this service refuse the client and not the work
 */
export function findingForStatus(response: ResolverResponse, scope: "service" | "work" = "work"): Finding | undefined {
  const { status } = response;
  if (status >= 200 && status < 300) return undefined;
  if (status === 404 || status === 410) return { kind: "none", reason: "unknown-work" };
  const message = `${hostOf(response)} returned status ${status}`;
  if (isTransientStatus(status, response.headers)) return { kind: "failure", reason: "unavailable", message };
  if (status === 401 || status === 402 || status === 403)
    return { kind: "failure", reason: "refused", message, ...(scope === "service" ? { isForAllWorks: true } : {}) };
  return { kind: "failure", reason: "unreadable", message };
}

export function unreadable(response: ResolverResponse, what: string): ResolverFailure {
  return { kind: "failure", reason: "unreadable", message: `${hostOf(response)} returned ${what}` };
}

function hostOf({ url }: ResolverResponse): string {
  return URL.parse(url)?.host ?? "the service";
}

/** How resolvers say what they found: addresses checked, names recognised, nothing twice, nothing endless. */

import { canonicalArxivId, withoutVersion } from "../identifiers/arxiv-id.ts";
import { canonicalDoi } from "../identifiers/doi.ts";
import { idsOfDoi, idsOfUrl, pmcidOf, pmidOf } from "../identifiers/identifiers.ts";
import { canonicalWebUrl } from "../identifiers/web-url.ts";
import type { Work, WorkIds } from "../work.ts";
import { ranked } from "./candidates.ts";
import type { Candidate, Finding, ResolverResponse } from "./resolver.ts";

/** More places than anybody will try. */
const CANDIDATES_MAX = 25;

/** A candidate as a service names it; an address that cannot be asked, or is none, is passed over. */
export interface RawCandidate extends Omit<Candidate, "url" | "licence"> {
  readonly url: string | null | undefined;
  readonly licence?: string | null | undefined;
}

export type ResolverFailure = Extract<Finding, { kind: "failure" }>;

export interface FindingDetails {
  /** What to say when no place is left. */
  readonly noneReason: "unknown-work" | "no-copy" | "not-open";
  readonly ids?: WorkIds | undefined;
  readonly title?: string | null | undefined;
  readonly year?: number | string | null | undefined;
}

export function findingOf(work: Work, rawCandidates: readonly RawCandidate[], details: FindingDetails): Finding {
  const sorted = rawCandidates.slice(0, 4 * CANDIDATES_MAX).map(rawCandidate => classified(rawCandidate, work));
  const ids = Object.assign({}, ...sorted.map(rawCandidate => rawCandidate.ids), details.ids) as WorkIds;
  const candidates = ranked(sorted.flatMap(({ candidate }) => candidate ?? [])).slice(0, CANDIDATES_MAX);
  const names = Object.keys(ids).length > 0 ? { ids } : {};
  if (candidates.length === 0) return { kind: "none", reason: details.noneReason, ...names };
  return { kind: "found", candidates, ...names, ...titleOf(details.title), ...yearOf(details.year) };
}

/**
 * What is known of some places in advance. The pages of PMC forbid to be downloaded by programs, and its files lie
 * elsewhere: such an address is a name, for the resolver `pmc`. The same holds for PubMed, for Europe PMC, whose
 * rendered PDFs ended in March 2026, and for arXiv, whose files follow from the name.
 */
function classified(
  rawCandidate: RawCandidate,
  work: Work,
): { readonly candidate?: Candidate; readonly ids?: WorkIds } {
  const url = canonicalWebUrl(rawCandidate.url);
  const names = url === undefined ? "" : idsOfUrl(url);
  if (url === undefined || typeof names === "string") return {};
  const { pmcid, pmid, openalex, arxiv, doi } = names;
  // `landing_page` goes there by itself.
  if (names.url === undefined && doi !== undefined && doi === work.ids.doi) return {};
  if (arxiv !== undefined)
    return {
      candidate: candidateOf(rawCandidate, `https://arxiv.org/pdf/${arxiv}`, "pdf"),
      ids: { arxiv: withoutVersion(arxiv) },
    };
  if (pmcid !== undefined) return { ids: { pmcid } };
  if (pmid !== undefined) return { ids: { pmid } };
  if (openalex !== undefined) return { ids: { openalex } };
  // The addresses on figshare.com are answered with 202 and a challenge, those of the API with the file.
  const file = /^https?:\/\/(?:[\w-]+\.)*figshare\.com\/ndownloader\/(?:articles\/\d+\/)?files\/(\d+)/.exec(url)?.[1];
  return { candidate: candidateOf(rawCandidate, file === undefined ? url : figshareFile(file)) };
}

export function figshareFile(id: number | string): string {
  return `https://api.figshare.com/v2/file/download/${id}`;
}

function candidateOf({ version, licence, checksum, bytes, kind }: RawCandidate, url: string, better = kind): Candidate {
  return {
    url,
    kind: better,
    ...(version === undefined ? {} : { version }),
    ...(licence ? { licence: licence.slice(0, 200) } : {}),
    ...(checksum === undefined ? {} : { checksum }),
    ...(bytes === undefined || !Number.isSafeInteger(bytes) || bytes < 0 ? {} : { bytes }),
  };
}

function titleOf(title: string | null | undefined): { readonly title?: string } {
  const words = title?.slice(0, 2000).replace(/\s+/g, " ").trim().slice(0, 500);
  return words ? { title: words } : {};
}

function yearOf(year: number | string | null | undefined): { readonly year?: number } {
  const number = typeof year === "string" ? Number(/^\d{4}/.exec(year)?.[0]) : year;
  return Number.isInteger(number) && Number(number) >= 1000 && Number(number) < 2200 ? { year: Number(number) } : {};
}

/** Names as a service spells them, those that are malformed left out. */
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

/** Whether a service speaks of the DOI that the work has: searches find what resembles it, too. */
export function matchesDoi(work: Work, text: string | null | undefined): boolean {
  return work.ids.doi !== undefined && canonicalDoi(text ?? "") === work.ids.doi;
}

/** A checksum as services write it, `md5:0123…` or the digits alone; undefined for what is none. */
export function md5(text: string | null | undefined): Candidate["checksum"] {
  const hex = /^(?:md5:)?([0-9a-f]{32})$/i.exec(text ?? "")?.[1];
  return hex === undefined ? undefined : { algorithm: "md5", hex: hex.toLowerCase() };
}

/** As OpenAlex, Unpaywall and Crossref write it. */
export function versionOf(text: string | null | undefined): Candidate["version"] {
  if (text === "publishedVersion" || text === "vor") return "published";
  if (text === "acceptedVersion" || text === "am") return "accepted";
  return text === "submittedVersion" ? "submitted" : undefined;
}

/** What a status says by itself, for services that mean by it what HTTP says; undefined where there is a body to read. */
export function findingForStatus(response: ResolverResponse): Finding | undefined {
  const { status } = response;
  if (status >= 200 && status < 300) return undefined;
  if (status === 404 || status === 410) return { kind: "none", reason: "unknown-work" };
  const message = `${hostOf(response)} answered ${status}`;
  if (status === 401 || status === 402 || status === 403) return { kind: "failure", reason: "refused", message };
  const isTransient = status === 408 || status === 425 || status === 429 || status >= 500;
  return { kind: "failure", reason: isTransient ? "unavailable" : "unreadable", message };
}

export function unreadable(response: ResolverResponse, what: string): ResolverFailure {
  return { kind: "failure", reason: "unreadable", message: `${hostOf(response)} answered ${what}` };
}

function hostOf({ url }: ResolverResponse): string {
  return URL.parse(url)?.host ?? "the service";
}

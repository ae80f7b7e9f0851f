/** What batch look-ups share: which names may be combined, and which record belongs to which work. */
import { arxivIdOfDoi, withoutVersion } from "../identifiers/arxiv-id.ts";
import type { Work, WorkIds } from "../work.ts";
import { findingForStatus, unreadable } from "./finding.ts";
import type { Finding, ResolverResponse } from "./resolver.ts";

/** Longer DOIs are asked about alone, so that the URL of a request for 75 works stays below 8 kB. */
const ENCODED_CHARS_MAX = 100;

/**
 * As `findingForStatus`, for a batch. A status such as 404 may concern one of the works or the request, so it is a failure,
 * after which each work is asked about alone.
 */
export function findingForBatchStatus(response: ResolverResponse, scope?: "service"): Finding | undefined {
  const finding = findingForStatus(response, scope);
  return finding?.kind === "none" ? unreadable(response, `status ${response.status}`) : finding;
}

/** False for long DOIs, and for those with characters that filters and lists of services use themselves. */
export function isPlainDoi(doi: string): boolean {
  return /^[a-z0-9./_:();-]+$/.test(doi) && encodeURIComponent(doi).length <= ENCODED_CHARS_MAX;
}

/** The finding for each work, by the record that shares an identifier with it. */
export function foundBy<Entry>(
  works: readonly Work[],
  entries: readonly Entry[],
  idsOf: (entry: Entry) => WorkIds,
  findingOf: (entry: Entry, work: Work) => Finding,
): readonly Finding[] {
  const byId = new Map<string, Entry>();
  for (const entry of entries) for (const id of idNames(idsOf(entry))) if (!byId.has(id)) byId.set(id, entry);
  return works.map(work => {
    const entry = idNames(work.ids)
      .map(id => byId.get(id))
      .find(each => each !== undefined);
    return entry === undefined ? { kind: "none", reason: "unknown-work" } : findingOf(entry, work);
  });
}

function idNames({ doi, arxiv, pmid, pmcid, openalex }: WorkIds): readonly string[] {
  const arxivId = arxiv ?? (doi && arxivIdOfDoi(doi));
  return [
    ...(doi === undefined ? [] : [`doi ${doi}`]),
    ...(arxivId === undefined ? [] : [`arxiv ${withoutVersion(arxivId)}`]),
    ...(pmid === undefined ? [] : [`pmid ${pmid}`]),
    ...(pmcid === undefined ? [] : [`pmcid ${pmcid}`]),
    ...(openalex === undefined ? [] : [`openalex ${openalex}`]),
  ];
}

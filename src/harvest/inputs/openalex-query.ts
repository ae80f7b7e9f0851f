/** Builds the requests of an OpenAlex search and parses its pages. */
import { z } from "zod";
import { idsOfDoi, idsOfUrl, openalexOf, workOf } from "../identifiers/identifiers.ts";
import { findingForStatus, type ResolverFailure, unreadable } from "../resolvers/finding.ts";
import { lenientText, lenientYear, listOf, optionalText, readJson } from "../resolvers/json-response.ts";
import { metadataOf } from "../resolvers/raw-metadata.ts";
import { urlWithQuery } from "../resolvers/request-url.ts";
import type { ResolverRequest, ResolverResponse } from "../resolvers/resolver.ts";
import type { Work } from "../work.ts";

export interface OpenAlexQuery {
  readonly text: string;
  readonly fromYear?: number | undefined;
  readonly toYear?: number | undefined;
  /** Only works with an open copy known to OpenAlex. @default false */
  readonly openOnly?: boolean | undefined;
  /** Maximum number of works; each page of up to 100 works costs part of the daily budget. @default 100 */
  readonly max?: number | undefined;
}

const PAGE_WORKS_MAX = 100;
export const QUERY_WORKS_DEFAULT = 100;

/**
 * The limit of numbered pages. More works need cursors, which require an API key (401 without one, since October 2026).
 */
const NUMBERED_WORKS_MAX = 10_000;

/** @param at page number, or cursor of the previous page */
export function pageRequest(query: OpenAlexQuery, at?: string): ResolverRequest {
  const filters = [
    query.fromYear !== undefined ? `from_publication_date:${query.fromYear}-01-01` : [],
    query.toYear !== undefined ? `to_publication_date:${query.toYear}-12-31` : [],
    query.openOnly === true ? "open_access.is_oa:true" : [],
  ].flat();
  return {
    url: urlWithQuery("https://api.openalex.org/works", {
      search: query.text.trim(),
      ...(filters.length > 0 ? { filter: filters.join(",") } : {}),
      select: "id,doi,title,publication_year,ids",
      // The same for every page: page numbers and cursors depend on the page size.
      per_page: String(pageSizeOf(query)),
      ...(isNumbered(query) ? { page: at ?? "1" } : { cursor: at ?? "*" }),
    }),
    role: "metadata",
  };
}

function pageSizeOf({ max = QUERY_WORKS_DEFAULT }: OpenAlexQuery): number {
  return Math.min(PAGE_WORKS_MAX, max);
}

function isNumbered({ max = QUERY_WORKS_DEFAULT }: OpenAlexQuery): boolean {
  return max <= NUMBERED_WORKS_MAX;
}

export type QueryPage =
  | {
      readonly works: readonly Work[];
      /** Total number of works that match. */
      readonly count: number;
      /** Undefined after the last page, or if `max` is reached. */
      readonly next?: ResolverRequest | undefined;
    }
  | { readonly failure: ResolverFailure };

const page = z.object({
  meta: z.object({
    count: z.number(),
    next_cursor: optionalText,
  }),
  results: listOf(
    z.object({
      id: optionalText,
      doi: optionalText,
      title: lenientText,
      publication_year: lenientYear,
      ids: z.object({ pmid: optionalText, pmcid: optionalText }).nullish(),
    }),
    PAGE_WORKS_MAX,
  ),
});

/** @param worksSoFar number of works of the previous pages */
export function parsePage(response: ResolverResponse, query: OpenAlexQuery, worksSoFar: number): QueryPage {
  const statusFinding = findingForStatus(response);
  // A search is never "not found": this finding is a failure too.
  if (statusFinding !== undefined)
    return {
      failure: statusFinding.kind === "failure" ? statusFinding : unreadable(response, `status ${response.status}`),
    };
  const parsed = readJson(response, page);
  if ("failure" in parsed) return parsed;
  const { meta, results } = parsed.data;
  const wanted = Math.max(0, (query.max ?? QUERY_WORKS_DEFAULT) - worksSoFar);
  const works = results.flatMap(workIn).slice(0, wanted);
  // An empty page is the last one, even if it has a cursor.
  const at = results.length > 0 && works.length < wanted ? nextPageOf(response.url, meta, query) : undefined;
  return { works, count: meta.count, ...(at ? { next: pageRequest(query, at) } : {}) };
}

/** The number or cursor of the page after the one at this URL. */
function nextPageOf(url: string, meta: z.infer<typeof page>["meta"], query: OpenAlexQuery): string | null | undefined {
  if (!isNumbered(query)) return meta.next_cursor;
  const number = Number(new URL(url).searchParams.get("page"));
  return number * pageSizeOf(query) < Math.min(meta.count, NUMBERED_WORKS_MAX) ? String(number + 1) : undefined;
}

type Result = z.infer<typeof page>["results"][number];

function workIn({ id, doi, title, publication_year, ids }: Result): readonly Work[] {
  const openalex = openalexOf(id?.split("/").at(-1) ?? "");
  const workIds = {
    ...(openalex === undefined ? {} : { openalex }),
    ...pubmedIdsOf(ids?.pmid),
    ...pubmedIdsOf(ids?.pmcid),
    ...idsOfDoi((doi ?? "").replace(/^https?:\/\/doi\.org\//i, "")),
  };
  if (Object.keys(workIds).length === 0) return [];
  return [workOf(workIds, metadataOf({ title, year: publication_year }))];
}

/** The ids in a URL such as `https://pubmed.ncbi.nlm.nih.gov/17183658`; none in other URLs. */
function pubmedIdsOf(url: string | null | undefined): { readonly pmid?: string; readonly pmcid?: string } {
  const ids = idsOfUrl(url ?? "");
  if (typeof ids === "string") return {};
  return { ...(ids.pmid ? { pmid: ids.pmid } : {}), ...(ids.pmcid ? { pmcid: ids.pmcid } : {}) };
}

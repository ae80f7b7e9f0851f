import { backoffMs } from "../../core/breaker/backoff.ts";
import { DownloadError, RejectedError } from "../../errors.ts";
import type { Hub } from "../../http/hub.ts";
import { pause } from "../../time/pause.ts";
import type { Time } from "../../time/time.ts";
import { failureOf } from "../attempt-failure.ts";
import type { ResolverRequest } from "../resolvers/resolver.ts";
import { plainHeaders, readText } from "../response-body.ts";
import type { Work } from "../work.ts";
import { type OpenAlexQuery, pageRequest, parsePage, type QueryPage } from "./openalex-query.ts";

export interface SearchDeps {
  readonly hub: Pick<Hub, "request">;
  readonly time: Time;
  readonly signal: AbortSignal;
}

const PAGE_BYTES_MAX = 8 * 2 ** 20;
const TRIES_MAX = 4;
const BACKOFF = { baseMs: 1000, capMs: 15_000 };
/** Long, because the run has no works to download until a page arrives. */
const MAX_WAIT_MS = 120_000;

/**
 * The works of a search, page by page. Ends early if the signal is aborted. Rejects with a DownloadError if a page cannot
 * be loaded.
 */
export async function* searchWorks(deps: SearchDeps, query: OpenAlexQuery): AsyncGenerator<readonly Work[]> {
  let worksSoFar = 0;
  let request: ResolverRequest | undefined = pageRequest(query);
  while (request !== undefined && !deps.signal.aborted) {
    const page = await loadPage(deps, request, query, worksSoFar);
    if (page === undefined || deps.signal.aborted) return;
    worksSoFar += page.works.length;
    request = page.next;
    yield page.works;
  }
}

type GoodPage = Extract<QueryPage, { readonly works: unknown }>;

/** Resolves to undefined if the signal is aborted. */
async function loadPage(
  deps: SearchDeps,
  request: ResolverRequest,
  query: OpenAlexQuery,
  worksSoFar: number,
): Promise<GoodPage | undefined> {
  for (let tries = 1; ; tries += 1) {
    const { page, message, mayRetry } = await tryPage(deps, request, query, worksSoFar);
    if (page !== undefined) return page;
    if (deps.signal.aborted) return undefined;
    if (!mayRetry || tries === TRIES_MAX) throw new DownloadError(`the OpenAlex search (--query) failed: ${message}`);
    try {
      await pause(deps.time, backoffMs(BACKOFF, tries, Math.random(), undefined), deps.signal);
    } catch (error) {
      if (!deps.signal.aborted) throw error;
      return undefined;
    }
  }
}

interface PageAttempt {
  readonly page?: GoodPage;
  readonly message: string;
  readonly mayRetry: boolean;
}

async function tryPage(
  { hub, signal }: SearchDeps,
  request: ResolverRequest,
  query: OpenAlexQuery,
  worksSoFar: number,
): Promise<PageAttempt> {
  try {
    const { url, role } = request;
    const response = await hub.request(url, { role, resolver: "openalex", maxWaitMs: MAX_WAIT_MS, signal });
    const { text } = await readText(response, PAGE_BYTES_MAX, undefined);
    const headers = plainHeaders(response.headers);
    const page = parsePage({ url, status: response.statusCode, headers, body: text }, query, worksSoFar);
    if ("works" in page) return { page, message: "", mayRetry: false };
    return { message: page.failure.message, mayRetry: page.failure.reason === "unavailable" };
  } catch (error) {
    if (error instanceof RejectedError) return { message: error.message, mayRetry: false };
    const { message, mayRetry } = failureOf(error);
    return { message: `${new URL(request.url).host}: ${message}`, mayRetry };
  }
}

import { backoffMs } from "../../core/breaker/backoff.ts";
import { DownloadError, RejectedError } from "../../errors.ts";
import type { Hub } from "../../http/hub.ts";
import { pause } from "../../stores/sqlite/open-database.ts";
import type { Time } from "../../time/time.ts";
import { failureOf } from "../attempt-failure.ts";
import type { ResolverRequest } from "../resolvers/resolver.ts";
import { plainHeaders, readText } from "../response-body.ts";
import type { Work } from "../work.ts";
import { type OpenAlexQuery, pageRequest, parsePage, type QueryPage } from "./openalex-query.ts";

export interface QueryDeps {
  readonly hub: Pick<Hub, "request">;
  readonly time: Time;
  readonly signal: AbortSignal;
}

const PAGE_BYTES_MAX = 8 * 2 ** 20;
const TRIES_MAX = 4;
const BACKOFF = { baseMs: 1000, capMs: 15_000 };
/** Long, because the run has nothing to do before the first page. */
const MAX_WAIT_MS = 120_000;

/** The works of a search, page by page. Rejects with a DownloadError if a page cannot be loaded. */
export async function* searchWorks(deps: QueryDeps, query: OpenAlexQuery): AsyncGenerator<readonly Work[]> {
  let worksSoFar = 0;
  let request: ResolverRequest | undefined = pageRequest(query);
  while (request !== undefined && !deps.signal.aborted) {
    const page = await pageOf(deps, request, query, worksSoFar);
    if (deps.signal.aborted) return;
    worksSoFar += page.works.length;
    request = page.next;
    yield page.works;
  }
}

type GoodPage = Extract<QueryPage, { readonly works: unknown }>;

async function pageOf(
  deps: QueryDeps,
  request: ResolverRequest,
  query: OpenAlexQuery,
  worksSoFar: number,
): Promise<GoodPage> {
  for (let tries = 1; ; tries += 1) {
    const { page, message, mayRetry } = await tryPage(deps, request, query, worksSoFar);
    if (page !== undefined) return page;
    if (!mayRetry || tries === TRIES_MAX || deps.signal.aborted)
      throw new DownloadError(`the OpenAlex search (--query) failed: ${message}`);
    await pause(deps.time, backoffMs(BACKOFF, tries, 1, undefined));
  }
}

interface PageAttempt {
  readonly page?: GoodPage;
  readonly message: string;
  readonly mayRetry: boolean;
}

async function tryPage(
  { hub, signal }: QueryDeps,
  request: ResolverRequest,
  query: OpenAlexQuery,
  worksSoFar: number,
): Promise<PageAttempt> {
  try {
    const { url, role } = request;
    const response = await hub.request(url, { role, resolver: "openalex", maxWaitMs: MAX_WAIT_MS, signal });
    const { text } = await readText(response, PAGE_BYTES_MAX);
    const headers = plainHeaders(response.headers);
    const page = parsePage({ url, status: response.statusCode, headers, body: text }, query, worksSoFar);
    if ("works" in page) return { page, message: "", mayRetry: false };
    return { message: page.failure.message, mayRetry: page.failure.reason === "unavailable" };
  } catch (error) {
    if (signal.aborted) return { message: "interrupted", mayRetry: false };
    if (error instanceof RejectedError) return { message: error.message, mayRetry: false };
    const { message, mayRetry } = failureOf(error);
    return { message, mayRetry };
  }
}

import { backoffMs } from "../../core/breaker/backoff.ts";
import { DownloadError, RejectedError } from "../../errors.ts";
import type { Hub } from "../../http/hub.ts";
import { pause } from "../../stores/sqlite/open-database.ts";
import type { Time } from "../../time/time.ts";
import { troubleOf } from "../attempt-failure.ts";
import type { Question } from "../resolvers/resolver.ts";
import { plainHeaders, readText } from "../response-body.ts";
import type { Work } from "../work.ts";
import { type OpenAlexQuery, type QueryPage, questionOf, readPage } from "./openalex-query.ts";

export interface QueryRoom {
  readonly hub: Pick<Hub, "request">;
  readonly time: Time;
  readonly signal: AbortSignal;
}

const PAGE_BYTES_MAX = 8 * 2 ** 20;
const TRIES_MAX = 4;
const BACKOFF = { baseMs: 1000, capMs: 15_000 };
/** Pages are few, and nothing can be done without them: they wait their turn. */
const MAX_WAIT_MS = 120_000;

/** The works that a search finds, a page at a time. Rejects with a DownloadError when the search cannot be had. */
export async function* worksOfQuery(room: QueryRoom, query: OpenAlexQuery): AsyncGenerator<readonly Work[]> {
  let had = 0;
  let question: Question | undefined = questionOf(query);
  while (question !== undefined && !room.signal.aborted) {
    const page = await pageOf(room, question, query, had);
    if (room.signal.aborted) return;
    had += page.works.length;
    question = page.next;
    yield page.works;
  }
}

type GoodPage = Extract<QueryPage, { readonly works: unknown }>;

async function pageOf(room: QueryRoom, question: Question, query: OpenAlexQuery, had: number): Promise<GoodPage> {
  for (let tries = 1; ; tries += 1) {
    const { page, message, mayPass } = await tried(room, question, query, had);
    if (page !== undefined) return page;
    if (!mayPass || tries === TRIES_MAX || room.signal.aborted)
      throw new DownloadError(`the search failed: ${message}`);
    await pause(room.time, backoffMs(BACKOFF, tries, 1, undefined));
  }
}

interface Tried {
  readonly page?: GoodPage;
  readonly message: string;
  readonly mayPass: boolean;
}

async function tried(
  { hub, signal }: QueryRoom,
  question: Question,
  query: OpenAlexQuery,
  had: number,
): Promise<Tried> {
  try {
    const { url, role } = question;
    const response = await hub.request(url, { role, resolver: "openalex", maxWaitMs: MAX_WAIT_MS, signal });
    const { text } = await readText(response.body, PAGE_BYTES_MAX);
    const headers = plainHeaders(response.headers);
    const page = readPage({ url, status: response.statusCode, headers, body: text }, query, had);
    if ("works" in page) return { page, message: "", mayPass: false };
    return { message: page.trouble.message, mayPass: page.trouble.reason === "unavailable" };
  } catch (error) {
    if (signal.aborted) return { message: "interrupted", mayPass: false };
    if (error instanceof RejectedError) return { message: error.message, mayPass: false };
    const { message, mayPass } = troubleOf(error);
    return { message, mayPass };
  }
}

/** A fixed number of concurrent callers, which check every response. */

import { type Dispatcher, request } from "undici";
import type { Hub } from "../../src/http/hub.ts";
import { BODY } from "./answer.ts";

export const CALLERS = 64;

/** Sends one request and reads its body to the end. */
export type SendOnce = () => Promise<void>;

/** The expected `Cache-Status`; undefined if the response must not have one. */
export type ExpectedCacheStatus = "hit" | "fwd=miss" | undefined;

export async function sendAll(send: SendOnce, requests: number, callers: number = CALLERS): Promise<void> {
  let left = requests;
  const caller = async () => {
    while (left > 0) {
      left -= 1;
      await send();
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
}

export function bareRequest(dispatcher: Dispatcher, url: () => string): SendOnce {
  return async () => checkedRequest(await request(url(), { dispatcher }), undefined);
}

export function hubRequest(hub: Hub, url: () => string, wantedStatus?: ExpectedCacheStatus): SendOnce {
  return async () => checkedRequest(await hub.request(url()), wantedStatus);
}

/** @param dispatcher one that Node's fetch understands. @default the global one */
export function bareFetch(url: () => string, dispatcher?: Dispatcher): SendOnce {
  const init = (dispatcher === undefined ? undefined : { dispatcher }) as RequestInit | undefined;
  return async () => checkedFetch(await fetch(url(), init), undefined);
}

export function hubFetch(hub: Hub, url: () => string, wantedStatus?: ExpectedCacheStatus): SendOnce {
  return async () => checkedFetch(await hub.fetch(url()), wantedStatus);
}

/** The same URL for each request. */
export function oneUrl(origin: string): () => string {
  const url = `${origin}/works/W2741809807`;
  return () => url;
}

/** A new URL for each request. */
export function newUrls(origin: string): () => string {
  let made = 0;
  return () => {
    made += 1;
    return `${origin}/works?page=${made}`;
  };
}

async function checkedRequest(
  { statusCode, headers, body }: Dispatcher.ResponseData<unknown>,
  wantedStatus: ExpectedCacheStatus,
): Promise<void> {
  const bytes = await body.arrayBuffer();
  check(statusCode, bytes.byteLength, headers["cache-status"], wantedStatus);
}

async function checkedFetch(response: Response, wantedStatus: ExpectedCacheStatus): Promise<void> {
  const bytes = await response.arrayBuffer();
  check(response.status, bytes.byteLength, response.headers.get("cache-status") ?? undefined, wantedStatus);
}

function check(
  status: number,
  bytes: number,
  cacheStatus: string | string[] | undefined,
  wantedStatus: ExpectedCacheStatus,
): void {
  const expected = wantedStatus && `docstokg; ${wantedStatus}`;
  if (status === 200 && bytes === BODY.length && cacheStatus === expected) return;
  throw new Error(`status ${status} with ${bytes} bytes and Cache-Status ${cacheStatus}, expected ${expected}`);
}

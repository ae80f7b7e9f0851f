import { FETCH_KEYS } from "./check-options.ts";
import type { FetchInput, FetchOptions } from "./hub.ts";

/** The options that `hub.fetch` passes to Node's fetch: a copy. */
export type FetchInit = Record<string, unknown>;

/** fetch reads inherited options too, such as the fields of a `Request`. A spread copies only an object's own. */
export function fetchInit(options: FetchOptions | null | undefined, dispatcher: object): FetchInit {
  if (!options || Object.getPrototypeOf(options) === Object.prototype) return { ...options, dispatcher };
  const init: FetchInit = {};
  for (const key of FETCH_KEYS) {
    const value: unknown = Reflect.get(options, key);
    if (value !== undefined) init[key] = value;
  }
  init["dispatcher"] = dispatcher;
  return init;
}

/** A copy of the headers that fetch would send, for a body that is passed as bytes and has no type of its own any more. */
export function fetchHeaders(input: FetchInput, init: FetchInit, contentType: string | null): Headers {
  const given = init["headers"] ?? (input instanceof Request ? input.headers : undefined);
  const headers = new Headers(given as RequestInit["headers"]);
  if (contentType !== null && !headers.has("content-type")) headers.set("content-type", contentType);
  return headers;
}

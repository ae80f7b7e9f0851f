import { FETCH_KEYS } from "./check-options.ts";
import type { FetchOptions } from "./hub.ts";

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

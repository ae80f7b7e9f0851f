import type { AsyncLocalStorage } from "node:async_hooks";
import type { CacheMode } from "../core/cache/cache-control.ts";
import type { ActiveRequests } from "./active-requests.ts";
import { FetchCall, type FetchCallObserver, urlOf } from "./fetch-call.ts";
import type { FetchInput } from "./hub.ts";

/**
 * One call of the global fetch of an installed hub, and the calls of Node's fetch that it leads to. Usually that is one. A
 * program that has replaced the global fetch before may send several: for a token, and then for the data.
 */
export class GlobalFetchCall implements FetchCallObserver {
  #input: FetchInput;
  #options: object | undefined;
  readonly #activeRequests: ActiveRequests;
  /** Calls of Node's fetch with the origin of their next request. */
  #expected: ExpectedRequest[] = [];
  #settled: Promise<unknown> | undefined;

  constructor(input: FetchInput, options: object | undefined, activeRequests: ActiveRequests) {
    this.#input = input;
    this.#options = options;
    this.#activeRequests = activeRequests;
  }

  run(storage: AsyncLocalStorage<GlobalFetchCall>, fetch: () => Promise<Response>): Promise<Response> {
    const settled = storage.run(this, fetch);
    this.#settled = settled;
    // A connection that was opened in this call keeps this object as long as it is open.
    const forget = () => {
      this.#input = "";
      this.#options = undefined;
      this.#expected = [];
      this.#settled = undefined;
    };
    settled.then(forget, forget);
    return settled;
  }

  /**
   * The call of Node's fetch to which a request belongs: a call that was redirected to its origin, or a new one.
   * If several calls match, one that was redirected to another origin is preferred: its requests have no credentials, so a
   * wrong match sends none.
   */
  callOf(origin: string, nowUs: number): FetchCall {
    const expected = this.#expected.filter(request => request.origin === origin);
    const left = expected.filter(({ call }) => call.dropsCredentialsAt(origin));
    const match = left.find(({ isSent }) => !isSent) ?? left[0] ?? expected.find(({ isSent }) => !isSent);
    if (match !== undefined) {
      match.isSent = true;
      return match.call;
    }
    const isForInput = isAtOrigin(this.#input, origin);
    const options = isForInput ? this.#options : strictMode(this.#input, this.#options);
    return new FetchCall(isForInput ? this.#input : origin, options, nowUs, this);
  }

  /** Whether a request to this origin may be the next one of a call that was redirected there. */
  expects(origin: string): boolean {
    return this.#expected.some(request => request.origin === origin);
  }

  onNext(call: FetchCall, origin: string): void {
    this.onEnd(call);
    this.#expected.push({ call, origin, isSent: false });
    // Only now, because most calls get no redirect, and no request is active until fetch follows it.
    call.keepHubOpen(this.#activeRequests);
    const release = () => call.release();
    Promise.resolve(this.#settled).then(release, release);
  }

  onEnd(call: FetchCall): void {
    this.#expected = this.#expected.filter(request => request.call !== call);
  }
}

interface ExpectedRequest {
  readonly call: FetchCall;
  readonly origin: string;
  /** Kept until its response: two calls that are redirected to one origin at the same time cannot be distinguished. */
  isSent: boolean;
}

/**
 * The program's own fetch may send the call to another origin: what must not be stored there either is not stored. It may
 * follow redirects itself.
 */
function strictMode(
  input: FetchInput,
  options: object | undefined,
): { readonly cache: CacheMode; readonly redirect: "manual" } {
  const { cacheMode } = new FetchCall(input, options, 0);
  return { cache: cacheMode === "no-store" ? cacheMode : "default", redirect: "manual" };
}

/** Also true for an input that is not an absolute URL: only a function of the program can know where it leads. */
function isAtOrigin(input: FetchInput, origin: string): boolean {
  const url = urlOf(input);
  if (url.startsWith(origin) && url[origin.length] === "/") return true;
  return (URL.parse(url)?.origin ?? origin) === origin;
}

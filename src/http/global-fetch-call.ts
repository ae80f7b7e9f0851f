import type { AsyncLocalStorage } from "node:async_hooks";
import type { ActiveRequests } from "./active-requests.ts";
import { FetchCall, urlOf } from "./fetch-call.ts";
import type { FetchInput } from "./hub.ts";

/**
 * One call of the global fetch of an installed hub, and the calls of Node's fetch that it leads to. Usually that is one. A
 * program that has replaced the global fetch before may send several: for a token, and then for the data.
 */
export class GlobalFetchCall {
  readonly #input: FetchInput;
  readonly #options: object | undefined;
  readonly #activeRequests: ActiveRequests;
  /** The calls of Node's fetch that have got a redirect, and have not sent the next request yet. */
  readonly #redirected: RedirectedCall[] = [];

  #settled: Promise<unknown> | undefined;

  constructor(input: FetchInput, options: object | undefined, activeRequests: ActiveRequests) {
    this.#input = input;
    this.#options = options;
    this.#activeRequests = activeRequests;
  }

  run(storage: AsyncLocalStorage<GlobalFetchCall>, fetch: () => Promise<Response>): Promise<Response> {
    const settled = storage.run(this, fetch);
    this.#settled = settled;
    return settled;
  }

  /** The call of Node's fetch to which a request belongs: a call that was redirected to its origin, or a new one. */
  callOf(origin: string, nowUs: number): FetchCall {
    const at = this.#redirected.findIndex(redirected => redirected.origin === origin);
    const [redirected] = at === -1 ? [] : this.#redirected.splice(at, 1);
    if (redirected !== undefined) return redirected.call;
    const isForInput = isAtOrigin(this.#input, origin);
    return new FetchCall(
      isForInput ? this.#input : origin,
      isForInput ? this.#options : undefined,
      nowUs,
      this.#onRedirect,
    );
  }

  readonly #onRedirect = (call: FetchCall, origin: string): void => {
    this.#redirected.push({ call, origin });
    // Only now, because most calls get no redirect, and no request is active until fetch follows it.
    call.hold(this.#activeRequests);
    const release = () => call.release();
    Promise.resolve(this.#settled).then(release, release);
  };
}

interface RedirectedCall {
  readonly call: FetchCall;
  /** Where the redirect leads. */
  readonly origin: string;
}

/** Also true for an input that is not an absolute URL: only a function of the program can know where it leads. */
function isAtOrigin(input: FetchInput, origin: string): boolean {
  const url = urlOf(input);
  if (url.startsWith(origin) && url[origin.length] === "/") return true;
  return (URL.parse(url)?.origin ?? origin) === origin;
}

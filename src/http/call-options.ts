import type { Role } from "../policy/roles.ts";
import type { FetchCall } from "./fetch-call.ts";

/** Options of one call that WHATWG fetch and `undici.request` do not have. All are optional. */
export interface CallOptions {
  /** Which limits and circuits of the host apply: `metadata`, `landing` or `artifact`. @default "metadata" */
  readonly role?: Role | undefined;
  /** The name of the resolver that makes the call. A resolver has its own circuit. @default none */
  readonly resolver?: string | undefined;
  /** The service of the policy whose limits apply, for a host that the policy does not list. @default none */
  readonly service?: string | undefined;
  /**
   * The tenant or API key that the call belongs to: any text that is not empty. Cached responses are never shared
   * between partitions, and a role with `per: partition` in the policy has a budget for each (law L13). Events have a
   * hash of it. @default none
   */
  readonly partition?: string | undefined;
  /** Units that the call uses of every window: a whole number from 1 to the smallest limit. @default 1 */
  readonly weight?: number | undefined;
  /**
   * What each attempt uses of other units than requests, `{ credits: 10 }`, where the policy limits them (`costs`): whole
   * numbers of 0 or more. All are taken together with the request, or nothing is. `requests` is the same as `weight`.
   * @default the policy's `call_costs`, else 1 of each unit that a limit counts
   */
  readonly costs?: Readonly<Record<string, number>> | undefined;
  /**
   * Called when the response of an attempt begins; returns what the attempt really used. The difference to `costs` is
   * refunded or charged. Undefined keeps the estimate. Names of headers are in lower case. An error that it throws becomes
   * a process warning.
   * @default the response headers that the policy names (`cost_headers`)
   */
  readonly settleCosts?: ((response: CostResponse) => Readonly<Record<string, number>> | undefined) | undefined;
  /**
   * The longest wait before each attempt is sent, in ms. An attempt that would have to wait longer is refused at once. 0
   * never waits for limits, Infinity waits without limit. The delay before a retry does not count. With `crawlDelay`, the
   * wait for robots.txt counts.
   * @default the rest of `deadlineMs` if given, else the policy's `max_delay_ms`; a retry without both may wait for the rest
   * of the hub's `retry.deadlineMs`
   */
  readonly maxWaitMs?: number | undefined;
  /**
   * The longest wait for open circuits and cooldowns together before each attempt, in ms: 0 or more, Infinity allowed. The
   * delay of a retry for a cooldown counts.
   * @default `maxWaitMs`, which does not bound the delay before a retry; a retry of a call without both does not wait for
   * circuits
   */
  readonly maxBreakerWaitMs?: number | undefined;
  /**
   * Time for the complete call in ms, above 0: waits, attempts and body. A call that cannot be sent in time is refused at
   * once; one that does not end in time fails with a DeadlineExceededError.
   * @default no limit for the body; attempts begin within the hub's `retry.deadlineMs`
   */
  readonly deadlineMs?: number | undefined;
  /**
   * Serves a stored response, however old, also one that must be revalidated first (`must-revalidate`, `no-cache`), or a
   * 504; sends nothing. @default false
   */
  readonly offline?: boolean | undefined;
  /**
   * Serves a stored response to a GET or HEAD, however stale, when the host cannot be reached: its connection fails or its
   * circuit is open. A response that must be revalidated first (`must-revalidate`, `no-cache`) becomes a 504. @default false
   */
  readonly staleOnDisconnect?: boolean | undefined;
  /**
   * How long a stored response is fresh if the server gives it no lifetime (no `max-age`, no `Expires`), in ms: 0 or
   * more, Infinity allowed. It counts from the receipt. A lifetime of the server always has priority.
   * @default a tenth of the time since `Last-Modified`
   */
  readonly cacheLifetimeMs?: number | undefined;
  /**
   * The result of a refused call (RateLimitExceeded, BreakerOpenError, BusyError): `throw` rejects with the error,
   * `respond` gives a 429 or 503 with `Retry-After`, which SDKs obey. @default the hub's `refusals`
   */
  readonly refusals?: "throw" | "respond" | undefined;
  /**
   * Redirects that `hub.request` and dispatchers follow: a whole number of at least 0. It has no effect on `fetch`, whose
   * own option `redirect` decides. @default 0
   */
  readonly maxRedirections?: number | undefined;
  /**
   * Judges a response by its status and headers, for retries and circuits; undefined leaves it to the policy. An error
   * that it throws becomes a process warning. @default the policy's classification
   */
  readonly outcome?: ((response: CostResponse) => JudgedOutcome | undefined) | undefined;
  /** True when the request may be sent twice. @default true for GET, HEAD and OPTIONS, false for other methods */
  readonly idempotent?: boolean | undefined;
}

/**
 * The judgement of the call option `outcome`: the host works (`success`), has failed (`failure`), works and requires fewer
 * requests (`throttled`, also with a pause in milliseconds), or the response says neither (`neutral`).
 */
export type JudgedOutcome =
  | "success"
  | "failure"
  | "throttled"
  | "neutral"
  | {
      /** The host works, and requires fewer requests. */
      readonly throttled: true;
      /** How long nothing is sent to the host, in milliseconds, as if the server had sent Retry-After. */
      readonly retryAfterMs: number;
    };

/** The head of a response, as `settleCosts` and `outcome` get it. */
export interface CostResponse {
  /** Status code. */
  readonly status: number;
  /** Header fields by name in lower case; a list for a field that was sent several times. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** The options of a call, and the call of `fetch` that it belongs to: fetch sends each redirect as a new request. */
export interface InnerCallOptions extends CallOptions {
  readonly fetchCall?: FetchCall | undefined;
}

/** If an option is missing here, the type makes that a compile error. */
export const CALL_KEYS = Object.keys({
  role: 0,
  resolver: 0,
  service: 0,
  partition: 0,
  weight: 0,
  costs: 0,
  settleCosts: 0,
  outcome: 0,
  maxWaitMs: 0,
  maxBreakerWaitMs: 0,
  deadlineMs: 0,
  offline: 0,
  staleOnDisconnect: 0,
  cacheLifetimeMs: 0,
  refusals: 0,
  maxRedirections: 0,
  idempotent: 0,
} satisfies Record<keyof CallOptions, 0>) as readonly (keyof CallOptions)[];

const CALL_KEY_SET: ReadonlySet<string> = new Set(CALL_KEYS);

/**
 * The call options among other options, without those that are undefined; undefined, and nothing allocated, when there are
 * none.
 */
export function pickCallOptions(options: object): CallOptions | undefined {
  let own: Record<string, unknown> | undefined;
  // A loop over the given options, because a request has fewer options than there are call options.
  for (const key in options) {
    if (!CALL_KEY_SET.has(key)) continue;
    const value: unknown = Reflect.get(options, key);
    if (value === undefined) continue;
    own ??= {};
    own[key] = value;
  }
  return own;
}

export const NO_OPTIONS: InnerCallOptions = Object.freeze({});

/**
 * The options of both; those of `first` have priority, so none of them may be undefined. Nothing is copied when only one
 * is given.
 */
export function mergeCallOptions(
  first: InnerCallOptions | undefined,
  second: InnerCallOptions | undefined,
): InnerCallOptions | undefined {
  if (first === undefined) return second;
  return second === undefined ? first : { ...second, ...first };
}

/** The limit that decided: of all limits that delay the request, the one that ends last. */
export interface Constraint {
  /**
   * The kind of limit: a rate limit (`window`), even spacing of sends (`spacing`), a cooldown that the server requested
   * (`cooldown`), the number of requests in flight (`concurrency`), a circuit breaker (`breaker`), or the shared store,
   * which does not answer (`store`).
   */
  readonly kind: "window" | "spacing" | "cooldown" | "concurrency" | "breaker" | "store";
  /** The owner of the limit: a host, `service <name>`, `resolver <name>`, or `global` for all requests of the process. */
  readonly owner: string;
  /** The limit as the policy writes it, for example `10/SECOND` or `max_concurrent 3`. */
  readonly limit: string;
}

/** The `limit` of a half-open circuit whose trial calls are all in flight. */
export const PROBE_IN_FLIGHT = "probe in flight";

/** The `limit` of an open circuit or a cooldown, with the stored reason: `open circuit (failures)`. */
export function openCircuitLimit(reason: string): string {
  return `open circuit (${reason})`;
}

/** The `limit` of a host that resumes after a cooldown begins with this. */
export const RAMP_UP = "ramp-up after a cooldown";

/** The `limit` of a key that an operator holds begins with this, and its reason follows: `hold (maintenance)`. */
export const HOLD = "hold";

/** A limit that a server has announced. */
export interface LearnedFrom {
  /** The family of header fields that announced it, such as `X-RateLimit`. */
  readonly source: string;
  /** When, in epoch milliseconds. */
  readonly wallMs: number;
}

/** An operator's order that changed the limits of a key or total (`docstokg limits set`). */
export interface OrderedRate {
  /** The rates of the order: `2/SECOND+100/HOUR`; empty if it is for `maxConcurrent` alone. */
  readonly rates: string;
  /** The number of requests in flight; absent if the order leaves it as it is. */
  readonly maxConcurrent?: number;
  /** Why, as the operator has written it. */
  readonly reason: string;
  /** Who gave the order: a user and machine, the address of a browser, or a program. */
  readonly by: string;
}

/** What has changed the limits of a key since the policy was loaded. */
export interface LimitChanges {
  /** What announced the last limit that the key has learned; undefined if it has learned none. */
  readonly learnedFrom?: LearnedFrom | undefined;
  /** The order of an operator in force; undefined if there is none. */
  readonly order?: OrderedRate | undefined;
  /** The order of an operator in force for a total that counts the requests of the key; undefined if there is none. */
  readonly totalOrder?: OrderedRate | undefined;
}

/** The setting behind a limit or circuit that made a request wait or refused it. */
export interface DecidedBy {
  /** The limit, such as `10/SECOND` or `max_concurrent 3`; absent when a circuit decided. */
  readonly limit?: string;
  /** The owner of the circuit or cooldown: a host, `service <name>` or `resolver <name>`; absent when a limit decided. */
  readonly circuit?: string;
  /** The value of the setting as its source writes it. */
  readonly value: unknown;
  /**
   * Where it was set: `ratelimits.yaml:34`, an environment variable, a flag, `built-in default`, `learned from … at …`,
   * `Retry-After of the server` or `an operator's order`. If an operator changed the limit, the operator and the reason
   * follow.
   */
  readonly where: string;
  /** `shadow` if the setting is not enforced and only reported. */
  readonly mode: "enforce" | "shadow";
}

/** One line for events: `10/SECOND (ratelimits.yaml:34)`. */
export function decidedByText({ limit, value, where }: DecidedBy): string {
  return `${limit ?? value} (${where})`;
}

/** `10/SECOND of api.crossref.org`, for messages and tables. */
export function describeConstraint({ limit, owner }: Constraint): string {
  return owner === "global" ? `${limit} of the process` : `${limit} of ${owner}`;
}

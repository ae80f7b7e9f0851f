/** The keys of `breakers.yaml`, also when it is passed as an object. The schema repeats these texts; a test compares them. */

/** The numbers of one circuit. */
export interface CircuitOptions {
  /**
   * Consecutive failures that open the circuit, 1 to 1000000.
   * @default inherited; otherwise 5 (metadata, resolvers), 4 (landing), 3 (artifact)
   */
  readonly fail_max?: number | undefined;
  /**
   * Time from opening the circuit to the first trial call, in seconds, above 0 and at most 31 days.
   * @default inherited; otherwise 45 (metadata), 60 (landing, resolvers), 120 (artifact)
   */
  readonly reset_timeout_s?: number | undefined;
}

/** Circuits by role. */
export interface CircuitsByRole {
  /** Circuit of requests for metadata. @default inherited */
  readonly metadata?: CircuitOptions | undefined;
  /** Circuit of requests for landing pages. @default inherited */
  readonly landing?: CircuitOptions | undefined;
  /** Circuit of requests for files. @default inherited */
  readonly artifact?: CircuitOptions | undefined;
}

/** Recognises a throttle that its status does not show. Every part that is given must match; header or body is needed. */
export interface ThrottleRuleOptions {
  /** Statuses (100 to 599) that the rule applies to. @default all */
  readonly status?: readonly number[] | undefined;
  /**
   * A header field that the response must have: its name, or `name: text` if its value must contain a text.
   * @default none
   */
  readonly header?: string | undefined;
  /**
   * A text of 1 to 200 characters that the first 4 KiB of a text, JSON or XML body must contain, in any case of letters.
   * The response is held back until they have arrived, for at most a second. @default none
   */
  readonly body?: string | undefined;
  /** Cooldown for a response without Retry-After, in seconds, above 0 and at most 31 days. @default none */
  readonly retry_after_s?: number | undefined;
}

/** The circuits of one host or service. */
export interface HostBreakerOptions extends CircuitOptions {
  /**
   * Longest cooldown that a Retry-After can cause, in seconds, above 0 and at most 31 days. A growing reset
   * timeout is limited by this value and by that of defaults. @default inherited; otherwise 900
   */
  readonly retry_after_cap_s?: number | undefined;
  /**
   * all: one set of circuits and cooldowns for all calls; partition: one for each partition that a call names. An
   * operator's command for the host applies to all of them. @default inherited; otherwise all
   */
  readonly per?: "all" | "partition" | undefined;
  /**
   * enforce refuses calls while a circuit is open or a host is in cooldown; shadow only reports which calls would have
   * been refused, and sends them. The mode of a host wins over that of its service, and both over the top-level one.
   * @default enforce
   */
  readonly mode?: "enforce" | "shadow" | undefined;
  /**
   * Rules that recognise throttles, in addition to 429, 403 with Retry-After or without remaining quota, and 503, 509
   * and 529 with Retry-After. Those of defaults, of the service and of the host apply together. @default none
   */
  readonly throttles?: readonly ThrottleRuleOptions[] | undefined;
  /** Numbers by role; a role wins over the numbers of its host. @default none */
  readonly roles?: CircuitsByRole | undefined;
}

/** Which HTTP statuses are failures. */
export interface ClassifyOptions {
  /** Statuses (100 to 599) that count as failures. @default 408, 429, 500, 502, 503, 504, 507, 509, 520 to 527, 529, 530 */
  readonly failure_statuses?: readonly number[] | undefined;
  /**
   * Statuses (100 to 599) that count neither as failure nor as success; this list wins over failure_statuses. A status
   * of 400 or more in neither list is neutral too. @default 401, 403, 404, 410, 451
   */
  readonly neutral_statuses?: readonly number[] | undefined;
}

/** Trial calls by role. */
export interface TrialCallOptions {
  /** Trial calls of metadata that may be in flight at once, 1 to 1000000. @default 1 */
  readonly metadata?: number | undefined;
  /** Trial calls of landing that may be in flight at once, 1 to 1000000. @default 1 */
  readonly landing?: number | undefined;
  /** Trial calls of artifact that may be in flight at once, 1 to 1000000. @default 2 */
  readonly artifact?: number | undefined;
}

/** The half-open state, in which trial calls decide whether the circuit closes. */
export interface HalfOpenOptions {
  /** How many trial calls may be in flight at once, by role. @default 1 (metadata), 1 (landing), 2 (artifact) */
  readonly trial_calls?: TrialCallOptions | undefined;
  /** Longest random delay before a trial call, in milliseconds, 0 to 60000. @default 150 */
  readonly jitter_ms?: number | undefined;
  /** Successful trial calls that close the circuit, 1 to 1000000. @default 1 */
  readonly success_threshold?: number | undefined;
}

/** The defaults of all circuits. */
export interface BreakerDefaults extends CircuitOptions {
  /**
   * Longest cooldown that a Retry-After can cause, in seconds, above 0 and at most 31 days. A growing reset
   * timeout is limited by this value too. @default 900
   */
  readonly retry_after_cap_s?: number | undefined;
  /**
   * all: one set of circuits and cooldowns for all calls; partition: one for each partition that a call names. An
   * operator's command for the host applies to all of them. @default all
   */
  readonly per?: "all" | "partition" | undefined;
  /** Which HTTP statuses are failures. @default built-in lists */
  readonly classify?: ClassifyOptions | undefined;
  /**
   * Rules that recognise throttles, in addition to 429, 403 with Retry-After or without remaining quota, and 503, 509
   * and 529 with Retry-After. Those of defaults, of the service and of the host apply together. @default none
   */
  readonly throttles?: readonly ThrottleRuleOptions[] | undefined;
  /** Numbers by role; a role wins over the numbers of its host. @default none */
  readonly roles?: CircuitsByRole | undefined;
  /** The half-open state, in which trial calls decide whether the circuit closes. @default built-in numbers */
  readonly half_open?: HalfOpenOptions | undefined;
}

/** The rolling failure window, for hosts that fail between successes. */
export interface RollingWindowOptions {
  /** Whether failures are counted in a rolling window. @default true */
  readonly enabled?: boolean | undefined;
  /** Length of the window, in seconds, above 0 and at most 31 days. @default 30 */
  readonly window_s?: number | undefined;
  /** Failures within the window that start a cooldown, 1 to 1000000. @default 6 */
  readonly threshold_failures?: number | undefined;
  /** Length of that cooldown, in seconds, above 0 and at most 31 days. @default 60 */
  readonly cooldown_s?: number | undefined;
  /**
   * Slow calls start the cooldown too: a call is slow if its response begins later than this, in milliseconds, above 0.
   * @default off
   */
  readonly slow_call_ms?: number | undefined;
  /** Share of slow calls within the window that starts the cooldown, above 0 and at most 1. @default 0.5 */
  readonly slow_call_share?: number | undefined;
  /** Slow calls start the cooldown only if the window has at least this many calls, 1 to 1000000. @default 10 */
  readonly slow_call_min?: number | undefined;
}

/** The store of cooldowns and circuits. */
export interface CooldownStoreOptions {
  /**
   * Where cooldowns and circuits are stored: none uses the store of the limits, sqlite a file, redis a server,
   * postgres a database.
   * @default none
   */
  readonly backend?: "none" | "sqlite" | "redis" | "postgres" | undefined;
  /** File (sqlite) or URL (redis, postgres) of the store. @default empty */
  readonly dsn?: string | undefined;
}

/** The reset that grows while a host stays down. */
export interface AdaptiveResetOptions {
  /** Whether each failed trial call doubles reset_timeout_s, up to retry_after_cap_s. @default true */
  readonly enabled?: boolean | undefined;
}

/**
 * How traffic resumes after a cooldown: first the trial calls of the role, then twice as many each time all of them were
 * answered.
 */
export interface RampUpOptions {
  /** Whether calls are held back after a cooldown. @default true */
  readonly enabled?: boolean | undefined;
  /**
   * When this many calls of a role may wait at once, no call is held back any more, 1 to 1000000. @default 64
   */
  readonly max_calls?: number | undefined;
}

/** Settings of all breakers together. */
export interface AdvancedBreakerOptions {
  /** Cooldown of a host that fails often between successes. @default on */
  readonly rolling_window?: RollingWindowOptions | undefined;
  /** Store of cooldowns and circuits. @default none */
  readonly cooldown_store?: CooldownStoreOptions | undefined;
  /** Longer reset for a host that stays down. @default on */
  readonly adaptive_reset?: AdaptiveResetOptions | undefined;
  /** Few calls at first after a cooldown. @default on */
  readonly ramp_up?: RampUpOptions | undefined;
}

/** The circuit breakers of every host: the content of `breakers.yaml`. */
export interface BreakersOptions {
  /** Version of the file format: 1. @default 1 */
  readonly version?: 1 | undefined;
  /**
   * default: fields of this file replace those of the shipped file, and its other fields stay; none: the shipped file
   * is ignored. @default default
   */
  readonly extends?: "default" | "none" | undefined;
  /**
   * enforce refuses calls while a circuit is open or a host is in cooldown; shadow only reports which calls would have
   * been refused, and sends them. The mode of a host wins over that of its service, and both over the top-level one.
   * @default enforce
   */
  readonly mode?: "enforce" | "shadow" | undefined;
  /** Breakers of hosts that are not listed, and of fields that a host does not set. @default built-in numbers */
  readonly defaults?: BreakerDefaults | undefined;
  /** Settings of all breakers together. @default built-in settings */
  readonly advanced?: AdvancedBreakerOptions | undefined;
  /**
   * Breakers by host. An entry holds for every port of the host, except ports that the policy names as `host:port`. A
   * listed host of a service has circuits of its own. @default none
   */
  readonly hosts?: Readonly<Record<string, HostBreakerOptions>> | undefined;
  /**
   * Breakers by service, as ratelimits.yaml names it; its members share circuits and cooldowns. @default none
   */
  readonly services?: Readonly<Record<string, HostBreakerOptions>> | undefined;
  /** Circuits by resolver. A resolver's circuit counts the calls that name it, whichever host they go to. @default none */
  readonly resolvers?: Readonly<Record<string, CircuitOptions>> | undefined;
}

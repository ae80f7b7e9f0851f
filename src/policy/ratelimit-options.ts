/**
 * The keys of `ratelimits.yaml`, also when it is passed as an object. The schema repeats these texts; a test compares
 * them.
 */

/** The limits of one budget. */
export interface BudgetLimits {
  /**
   * Rate limits such as 10/SECOND, 1/3SECOND or 300/min; a list, or one text with + between the rates. All of them
   * apply at once. none: no rate limit, not even an inherited one. @default inherited; for total, no rate limit
   */
  readonly rates?: string | readonly string[] | undefined;
  /**
   * Rate limits in other units than requests, by the name of the unit: credits: 100000/DAY. Amounts of money are whole
   * millionths of the currency. All of them apply at once, together with rates. none removes an inherited limit.
   * @default inherited; for total, none
   */
  readonly costs?: Readonly<Record<string, string | readonly string[]>> | undefined;
  /** Maximum number of requests in flight, 1 or more. @default inherited; otherwise no maximum */
  readonly max_concurrent?: number | undefined;
  /** Whether max_concurrent counts over all processes that share a store. @default false */
  readonly shared?: boolean | undefined;
  /** Milliseconds added to every window to absorb network jitter, 0 to 60000. @default 25 */
  readonly guard_ms?: number | undefined;
  /**
   * burst sends as soon as a window allows; smooth spaces requests evenly, at (N - 2) / T for a rate of N in T.
   * @default burst
   */
  readonly shape?: "burst" | "smooth" | undefined;
}

/** The limits of one role. */
export interface RoleLimits extends BudgetLimits {
  /**
   * Longest wait for a rate limit or cooldown, in milliseconds, 0 or more. A call that would wait longer is refused at
   * once. @default inherited; otherwise 200 (metadata), 250 (landing), 2000 (artifact)
   */
  readonly max_delay_ms?: number | undefined;
  /** Whether HEAD requests count toward the rate limits. @default inherited; otherwise false */
  readonly count_head?: boolean | undefined;
  /**
   * Costs of a call in the units that the call does not set itself, whole numbers of 0 or more: credits: 10.
   * @default inherited; otherwise 1
   */
  readonly call_costs?: Readonly<Record<string, number>> | undefined;
  /**
   * Response headers that say what the call really used, by unit: credits: X-Credits-Used. The difference is returned or
   * charged afterwards. @default inherited; otherwise none
   */
  readonly cost_headers?: Readonly<Record<string, string>> | undefined;
  /**
   * all: one budget for all calls; partition: one budget for each partition that a call names, below the common total.
   * Calls without a partition share one budget. @default inherited; otherwise all
   */
  readonly per?: "all" | "partition" | undefined;
  /**
   * enforce applies the limits; shadow only reports which calls would have waited or been refused, and sends them. The
   * most specific key wins. @default enforce
   */
  readonly mode?: "enforce" | "shadow" | undefined;
}

/** Limits by role. A field that a role does not set is inherited: host from service, service from defaults. */
export interface LimitsByRole {
  /** Limits of requests for metadata: API calls and other small answers. @default inherited */
  readonly metadata?: RoleLimits | undefined;
  /** Limits of requests for landing pages of articles. @default inherited */
  readonly landing?: RoleLimits | undefined;
  /** Limits of requests for files. @default inherited */
  readonly artifact?: RoleLimits | undefined;
}

/** The limits of requests that carry a key. */
export interface TierLimits extends LimitsByRole {
  /** Budget over all roles together; a request needs a free slot in its role and in the total. @default no total */
  readonly total?: BudgetLimits | undefined;
}

/** The limits of one host. */
export interface HostLimits extends TierLimits {
  /**
   * Limits of requests that carry a key or the email address, by the name that identities.yaml gives it: an
   * environment variable such as API_KEY, or mailto. Fields that are set here replace those of this entry, and these
   * requests have a budget of their own. If several apply, the last one wins. @default none
   */
  readonly with?: Readonly<Record<string, TierLimits>> | undefined;
  /** Whether the rates of this entry adapt to 429 responses. @default inherited; otherwise aimd.enabled */
  readonly aimd?: boolean | undefined;
}

/** Members that replace those of the shipped service. */
export interface ReplacedMembers {
  /** The only members: those of the shipped service are dropped. At least one. @default none */
  readonly replace: readonly string[];
}

/** The limits of a service: hosts, suffixes and paths that share one budget. */
export interface ServiceLimits extends HostLimits {
  /**
   * Hosts, *.suffix for every host below a name, or host/path for one part of a host; at least one, unless per_host is
   * true. They are added to the shipped members; { replace: [...] }, or !replace in YAML, replaces those. @default none
   */
  readonly members?: readonly string[] | ReplacedMembers | undefined;
  /**
   * One budget for each host that the calls of this service go to, in addition to the limits of the host. Calls select
   * the service with the option service, and members must be absent. @default false
   */
  readonly per_host?: boolean | undefined;
}

/** Adaptive rate: lowers the rate of a host that answers 429, and raises it again to the configured one. */
export interface AimdOptions {
  /** Whether rates adapt. @default false */
  readonly enabled?: boolean | undefined;
  /** Length of one observation, in seconds, above 0. @default 60 */
  readonly window_s?: number | undefined;
  /** Share of 429 responses in a window from which the rate is lowered, above 0 and at most 1. @default 0.05 */
  readonly high_429_ratio?: number | undefined;
  /** Percent of the configured rate added after a window without too many 429, 0 to 100. @default 5 */
  readonly increase_step_pct?: number | undefined;
  /** Percent of the current rate taken away after a window with too many 429, 0 to below 100. @default 20 */
  readonly decrease_step_pct?: number | undefined;
  /** Lowest factor of the configured rate, above 0 and at most max_multiplier. @default 0.3 */
  readonly min_multiplier?: number | undefined;
  /** Highest factor of the configured rate, above 0 and at most 1. @default 1 */
  readonly max_multiplier?: number | undefined;
}

/** The store of the limits. */
export interface BackendOptions {
  /**
   * memory: this process only; multiprocess: all processes of this user on this machine; sqlite: all processes that
   * use the same file; redis: all processes that use the same server; postgres: all processes that use the same database.
   * @default memory
   */
  readonly kind?: "memory" | "multiprocess" | "sqlite" | "redis" | "postgres" | undefined;
  /** File (sqlite) or URL (redis, postgres) of the store; empty for memory and multiprocess. @default empty */
  readonly dsn?: string | undefined;
  /**
   * What a process does while the store does not answer. share: it uses its share of each limit, and calls that need
   * more wait; wait: calls are queued until the store is back; refuse: calls fail at once. @default share
   */
  readonly when_store_away?: "share" | "wait" | "refuse" | undefined;
  /**
   * The largest number of processes that share the store, 1 or more. A process that has not reached the store yet uses
   * 1/fleet_size of each limit; without this key it waits. @default the number that the store has counted
   */
  readonly fleet_size?: number | undefined;
}

/** Limits over all hosts. */
export interface GlobalLimits {
  /** Maximum number of requests in flight over all hosts, 1 or more. @default no maximum; the shipped file sets 500 */
  readonly max_inflight?: number | undefined;
}

/** The rate limits of every host: the content of `ratelimits.yaml`. */
export interface RatelimitsOptions {
  /** Version of the file format: 1. @default 1 */
  readonly version?: 1 | undefined;
  /**
   * default: fields of this file replace those of the shipped file, and its other fields stay; none: the shipped file
   * is ignored. @default default
   */
  readonly extends?: "default" | "none" | undefined;
  /**
   * enforce applies the limits; shadow only reports which calls would have waited or been refused, and sends them. The
   * most specific key wins. @default enforce
   */
  readonly mode?: "enforce" | "shadow" | undefined;
  /** Limits of hosts that are not listed, and of fields that a host does not set. @default built-in limits */
  readonly defaults?: LimitsByRole | undefined;
  /** Limits by host. An entry holds for every port of the host, except ports that the policy names as `host:port`. @default none */
  readonly hosts?: Readonly<Record<string, HostLimits>> | undefined;
  /** Hosts, suffixes and paths that share one budget, by the name of the service. @default none */
  readonly services?: Readonly<Record<string, ServiceLimits>> | undefined;
  /** The former name of services. @default none */
  readonly groups?: Readonly<Record<string, ServiceLimits>> | undefined;
  /** Adaptive rate: lowers the rate of a host that answers 429, and raises it again. @default off */
  readonly aimd?: AimdOptions | undefined;
  /** Store of the limits. @default memory */
  readonly backend?: BackendOptions | undefined;
  /** Limits over all hosts. @default none */
  readonly global?: GlobalLimits | undefined;
}

import type { Role } from "../policy/roles.ts";

/** What somebody asks of the gate. */
export interface EntryRequest {
  readonly host: string;
  readonly role: Role;
  /**
   * The group of the policy whose lanes it draws on instead of those of its host, for hosts that the policy cannot know.
   * The breaker goes by the host all the same. A RangeError when the policy has no such group.
   */
  readonly service?: string | undefined;
  /** Matters only for hosts whose parts have budgets of their own. */
  readonly path?: string | undefined;
  /** @default "GET" */
  readonly method?: string | undefined;
  /** Units of every window. @default 1 */
  readonly weight?: number | undefined;
  /** Whose idea the call was, where resolvers have circuits of their own. */
  readonly resolver?: string | undefined;
  /** How long the call itself may take; a probe's place is held for that and a margin. */
  readonly timeoutMs?: number | undefined;
  /**
   * When the request counts: as soon as it is granted, or when its headers are said to be written, and as written now
   * until then. @default "written"
   */
  readonly stamp?: "granted" | "written" | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Handed the way out of the line when it has to wait: a signal for each of many requests would cost more. */
  readonly onWait?: ((leave: (reason: unknown) => void) => void) | undefined;
  /**
   * The longest this call may wait, for whatever. 0 never waits, Infinity waits as long as it takes.
   * @default the policy's `max_delay_ms` for rates and cooldowns, no bound for slots
   */
  readonly maxWaitMs?: number | undefined;
  /** The caller's option that set `maxWaitMs`, for the message of a refusal. @default "maxWaitMs" */
  readonly maxWaitOption?: "maxWaitMs" | "deadlineMs" | undefined;
  /**
   * The longest this call may wait for a host that is cut off, counted from when it meets the denial: for callers who
   * would wait for a rate as long as it takes, but not for an outage. @default maxWaitMs
   */
  readonly maxBreakerWaitMs?: number | undefined;
}

import type { SentKeys } from "../policy/identity.ts";
import type { Role } from "../policy/roles.ts";

/**
 * The sender of a request that may have to wait. An object and not a function, so that most requests create nothing for
 * it.
 */
export interface QueuedCaller {
  /** True when the caller has ended the request. The gate does not queue it then. */
  readonly isOver: boolean;
  /**
   * The request is queued. `leave` leaves the queue (cheaper than an AbortSignal per request), `waitParts` returns what
   * the wait until now was spent on.
   */
  onWait(leave: (reason: unknown) => void, waitParts: () => WaitParts): void;
}

/** The parts of a wait that were not spent on rates, in ms. */
export interface WaitParts {
  /** The part that was spent on slots and turns, which `max_delay_ms` does not bound. */
  readonly slotWaitMs: number;
  /** The part that was spent on open circuits and cooldowns. */
  readonly breakerWaitMs: number;
}

/** The wait of a call that was granted and comes to the gate again without having been sent. */
export interface EarlierWait extends WaitParts {
  /** Milliseconds since its first arrival. */
  readonly waitedMs: number;
}

/** A request as the gate receives it. */
export interface EntryRequest {
  readonly host: string;
  readonly role: Role;
  /**
   * The service whose limits apply. If it has `per_host`, they apply in addition to the limits of the host. Otherwise
   * they replace the defaults of a host that the policy does not list. The breaker is still that of the host. An unknown
   * service is a RangeError.
   */
  readonly service?: string | undefined;
  /** The tenant or API key of the call, for budgets that the policy marks `per: partition`. */
  readonly partition?: string | undefined;
  /** Needed only for hosts that the policy splits by path. */
  readonly path?: string | undefined;
  /**
   * The keys that the request carries, which decide which limits `with` a key apply.
   * @default those of a request over https
   */
  readonly sentKeys?: SentKeys | undefined;
  /** @default "GET" */
  readonly method?: string | undefined;
  /** Units that the request uses of every window. @default 1 */
  readonly weight?: number | undefined;
  /**
   * What the request uses of other units than requests, `{ credits: 10 }`, whole numbers of 0 or more; `requests` is
   * the same as `weight`. If no limit counts costs, they have no effect; otherwise a unit that no limit counts is a
   * RangeError. @default the policy's `call_costs`, else 1 of each unit
   */
  readonly costs?: Readonly<Record<string, number>> | undefined;
  /** Name of the resolver that caused the call, if resolvers have circuits of their own. */
  readonly resolver?: string | undefined;
  /** Longest duration of the call in ms. The lease of a probe lasts this long and a margin. */
  readonly timeoutMs?: number | undefined;
  /**
   * When the windows count the request: at the grant, or when its headers are reported as written. Until that report it
   * counts as written now. @default "written"
   */
  readonly stamp?: "granted" | "written" | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Notified if the request has to wait. */
  readonly caller?: QueuedCaller | undefined;
  /**
   * Longest wait in ms, for any reason. With 0 the request never waits, with Infinity it waits as long as it takes.
   * @default the policy's `max_delay_ms` for rates, cooldowns and trial calls, no bound for slots
   */
  readonly maxWaitMs?: number | undefined;
  /** How long the call has waited before, if it enters the gate again: its bounds begin with its first arrival. */
  readonly earlier?: EarlierWait | undefined;
  /** The caller's option that set `maxWaitMs`, for the message of a refusal. @default "maxWaitMs" */
  readonly maxWaitOption?: "maxWaitMs" | "deadlineMs" | undefined;
  /**
   * Longest wait in ms for open circuits and cooldowns together. For callers that wait for a rate as long as it takes,
   * but not for an outage. @default maxWaitMs
   */
  readonly maxBreakerWaitMs?: number | undefined;
}

/** The rest of the bound of a call in ms. A bound of the policy does not include the wait for slots. */
export function leftOfBoundMs({ maxWaitMs, earlier }: EntryRequest, maxDelayMs: number): number {
  if (earlier === undefined) return maxWaitMs ?? maxDelayMs;
  const { waitedMs, slotWaitMs } = earlier;
  return Math.max(0, maxWaitMs === undefined ? maxDelayMs - waitedMs + slotWaitMs : maxWaitMs - waitedMs);
}

/** How long a call that has lost its grant has waited since its first arrival, `sinceUs`. */
export function earlierWaitOf(
  sinceUs: number,
  nowUs: number,
  before: EarlierWait | undefined,
  lost: WaitParts | undefined,
): EarlierWait {
  return {
    waitedMs: (nowUs - sinceUs) / 1000,
    slotWaitMs: (before?.slotWaitMs ?? 0) + (lost?.slotWaitMs ?? 0),
    breakerWaitMs: (before?.breakerWaitMs ?? 0) + (lost?.breakerWaitMs ?? 0),
  };
}

import type { RoleBudget } from "../limiter/role-budget.ts";
import type { LeaseReply, LeaseRequest } from "../stores/store.ts";
import type { Time } from "../time/time.ts";
import { takeFirst } from "./exchange-parts.ts";
import type { RequestPace } from "./request-pace.ts";
import { claimsOf } from "./shared-use-reports.ts";
import type { SpareUnits } from "./spare-units.ts";

/** The use over all processes is asked for again after this. */
const USE_REFRESH_US = 1_000_000;
/** Bounds one lease: units that this process cannot send at once would be missing for the other processes. */
const MAX_UNITS_PER_LEASE = 64;

/** A request of units, as it was sent. */
export interface UnitRequest extends LeaseRequest {
  readonly roleBudget: RoleBudget;
}

/** The units that this process requests with its next exchange: at most one request for each role budget. */
export class UnitRequests {
  readonly #time: Time;
  readonly #pace: RequestPace;
  readonly #spare: SpareUnits;
  readonly #wanted = new Map<RoleBudget, { readonly least: number; readonly most: number }>();

  constructor(time: Time, pace: RequestPace, spare: SpareUnits) {
    this.#time = time;
    this.#pace = pace;
    this.#spare = spare;
  }

  get size(): number {
    return this.#wanted.size;
  }

  /** Requests at least `least` units, up to `wanted` for the waiting requests, and spare ones; at most those of a turn. */
  add(roleBudget: RoleBudget, least: number, wanted: number): void {
    this.#pace.asking(roleBudget);
    const most = wanted + this.#spare.grow(roleBudget, this.#time.monotonicUs());
    const turnUnits = Math.min(roleBudget.turnUnits(this.#pace.turnUs), MAX_UNITS_PER_LEASE);
    if (roleBudget.unitLease !== undefined) roleBudget.unitLease.turnUnits = turnUnits;
    const bounded = Math.min(most, turnUnits);
    this.#wanted.set(roleBudget, { least, most: Math.max(least, bounded) });
  }

  /** The first requests, at most `most`, to be sent now, in the order of their turns. */
  take(nowUs: number, most: number): readonly UnitRequest[] {
    return takeFirst(this.#wanted, most).map(([roleBudget, wanted]) => ({
      ...{ roleBudget, claims: claimsOf(roleBudget, nowUs), ...wanted },
      aheadMs: this.#pace.aheadMs(roleBudget),
      wantsUse: nowUs - (roleBudget.sharedUse?.sentUs ?? Number.NEGATIVE_INFINITY) >= USE_REFRESH_US,
    }));
  }

  /** Drops all requests that were not sent, and returns their role budgets. */
  drop(): readonly RoleBudget[] {
    const dropped = [...this.#wanted.keys()];
    this.#wanted.clear();
    return dropped;
  }

  /** The store has replied to a request. */
  replied({ roleBudget, most }: UnitRequest, reply: LeaseReply | undefined): void {
    const isAtOnce = reply?.kind === "granted" && reply.units === most && (reply.delayMs ?? 0) === 0;
    if (!isAtOnce) this.#spare.end(roleBudget);
  }
}

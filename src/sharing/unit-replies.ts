import { type Budget, budgetsAbove } from "../limiter/budget.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import type { UnitLease } from "../limiter/unit-lease.ts";
import { LEASE_MS, type LeaseReply } from "../stores/store.ts";
import type { Time } from "../time/time.ts";
import type { LeasedUnits } from "./leased-units.ts";
import { isLost } from "./lost-data.ts";
import type { PeerChange } from "./peer-change.ts";
import type { RequestPace } from "./request-pace.ts";
import type { RequestedUnits } from "./requested-units.ts";
import { applyContact, applyUse, type SharedUseReports } from "./shared-use-reports.ts";
import type { UnitRequest } from "./unit-requests.ts";

/** After an order the store is asked again within this time, as long as another process claims stricter limits. */
const OVERRULED_RETRY_MS = 1000;

export interface UnitRepliesDeps {
  readonly time: Time;
  readonly units: LeasedUnits;
  readonly requested: RequestedUnits;
  readonly reports: SharedUseReports;
  readonly pace: RequestPace;
  readonly onChange: (change: PeerChange) => void;
}

/** Applies the replies of the store: the units that it grants, and when it has more. */
export class UnitReplies {
  readonly #deps: UnitRepliesDeps;
  /** When an operator has last changed the rates of a budget. */
  readonly #orderedUs = new WeakMap<RoleBudget, number>();

  constructor(deps: UnitRepliesDeps) {
    this.#deps = deps;
  }

  /** An operator has changed the rates of this role budget. */
  ordered(roleBudget: RoleBudget): void {
    this.#orderedUs.set(roleBudget, this.#deps.time.monotonicUs());
  }

  isOrderedSince(roleBudget: RoleBudget, sinceUs: number): boolean {
    return (this.#orderedUs.get(roleBudget) ?? Number.NEGATIVE_INFINITY) >= sinceUs;
  }

  /**
   * A reload may have changed the budgets since the `claims` were sent.
   * @param reply undefined if the store has sent none for this request
   */
  apply(request: UnitRequest, reply: LeaseReply | undefined, sentUs: number): void {
    const { time, units, requested, onChange } = this.#deps;
    const { roleBudget, least } = request;
    const unitLease = units.leaseOf(roleBudget);
    const nowUs = time.monotonicUs();
    const expectedUs = roleBudget.storeReadyUs(least);
    unitLease.isRequesting = false;
    requested.replied(roleBudget);
    if (reply !== undefined) this.#applyReply(request, unitLease, reply, sentUs, nowUs);
    // The timer of the waiting requests is set for the time that the store had announced before.
    if (expectedUs > nowUs && roleBudget.storeReadyUs(least) < expectedUs) onChange({ kind: "earlier", roleBudget });
    onChange({ kind: "ready", roleBudget });
  }

  #applyReply(
    { roleBudget, claims, least }: UnitRequest,
    unitLease: UnitLease,
    reply: LeaseReply,
    sentUs: number,
    nowUs: number,
  ): void {
    const { units, reports, pace, onChange } = this.#deps;
    if (!isLost(reply)) {
      unitLease.contactUs = nowUs;
      applyContact(roleBudget, claims, reply.kind === "wait" ? reply.key : undefined, nowUs);
      reports.known(roleBudget, nowUs);
    }
    if (reply.use !== undefined) applyUse(roleBudget, claims, reply.use, sentUs, nowUs);
    if (reply.kind === "granted") {
      const keys = claims.map(({ key }) => key);
      units.add(roleBudget, keys, reply.units, Math.ceil((reply.delayMs ?? 0) * 1000));
    }
    this.#applyWait(roleBudget, unitLease, reply, least, nowUs);
    pace.adjust(roleBudget, reply);
    if (reply.isStricter && !unitLease.isOverruled) {
      unitLease.isOverruled = true;
      onChange({ kind: "overruled", roleBudget });
    }
  }

  /** Notes when more units can be expected: in the budget above that has no more, or else in the role budget. */
  #applyWait(roleBudget: RoleBudget, unitLease: UnitLease, reply: LeaseReply, least: number, nowUs: number): void {
    const waitUs = Math.ceil(Math.min(waitMsOf(reply), this.#retryMs(roleBudget, reply, nowUs)) * 1000);
    const refusedUnits = reply.kind === "wait" ? least : 1;
    const full = fullBudget(roleBudget, reply, nowUs);
    const untilUs = waitUs === 0 ? 0 : nowUs + waitUs;
    roleBudget.storeMayHaveUnits();
    if (full === undefined) {
      unitLease.notBeforeUs = untilUs;
      unitLease.refusedUnits = refusedUnits;
    } else {
      full.fullUntilUs = untilUs;
      full.fullForUnits = refusedUnits;
    }
  }

  /**
   * Another process may claim stricter limits, such as the limits before an order or a reload. If that process is idle or
   * has ended, its claim ends with its lease, and the wait that the store announced may end then too.
   */
  #retryMs(roleBudget: RoleBudget, { isStricter }: LeaseReply, nowUs: number): number {
    if (!isStricter) return Number.POSITIVE_INFINITY;
    return this.isOrderedSince(roleBudget, nowUs - LEASE_MS * 1000) ? OVERRULED_RETRY_MS : LEASE_MS;
  }
}

/** The budget above the role budget that has no more units; undefined if it is the role budget, or not known. */
function fullBudget(roleBudget: RoleBudget, reply: LeaseReply, nowUs: number): Budget | undefined {
  const above = budgetsAbove(roleBudget);
  if (reply.kind === "wait") return above.find(({ storeKey }) => storeKey === reply.key);
  return above.find(({ log, windows }) => log.earliestUs(windows, 0, reply.units + 1, nowUs) > nowUs);
}

/** When the next units can be expected; 0 if the process may ask at any time. */
function waitMsOf(reply: LeaseReply): number {
  if (reply.kind === "wait") return reply.waitMs;
  return reply.isOnlyUser ? 0 : (reply.nextMs ?? 0);
}

/**
 * The steps of an exchange between a process and a store: settle leased units, count reported use, then lease new
 * units. For every backend that keeps `SharedBudget`s. Reads no clock and changes only the given budgets.
 */
import type { SharedBudget, UnitDemand } from "../core/limits/shared-budget.ts";
import type { ClaimUse, LeaseReply, LeaseRequest, Settlement, StoreClaim, UseReport } from "./store.ts";

/** The budgets during one exchange. */
export interface Budgets {
  /** Undefined for a budget that was never used or has expired. */
  find(key: string): SharedBudget | undefined;
  /** The stored budget, or a new one. */
  open(key: string): SharedBudget;
}

/** The calling process and the instant of the exchange. */
export interface ExchangeContext {
  readonly process: string;
  readonly nowUs: number;
  readonly leaseUs: number;
  /** Processes that have ended. Their leases end in every budget that this process asks for. @default none */
  readonly dead?: readonly string[] | undefined;
}

export function settleAll(budgets: Budgets, settlements: Iterable<Settlement>, context: ExchangeContext): void {
  const { process, nowUs, leaseUs } = context;
  // Added up by budget first. If a lease has ended, the process settles more units than it still holds. Then all its
  // written units must count before any returned unit, over all settlements.
  const sums = new Map<string, { written: number; returned: number }>();
  for (const { keys, written, returned } of settlements) {
    for (const key of keys) {
      const sum = sums.get(key) ?? { written: 0, returned: 0 };
      sums.set(key, { written: sum.written + written, returned: sum.returned + returned });
    }
  }
  for (const [key, { written, returned }] of sums) {
    const budget = budgets.find(key);
    budget?.settle(process, written, returned, nowUs);
    budget?.renew(process, nowUs + leaseUs, nowUs);
  }
}

/** To be called before `leaseAll`, so that the reported units count. */
export function reportAll(budgets: Budgets, reports: Iterable<UseReport>, context: ExchangeContext): void {
  for (const { claim, sent, sentAgoUs, known } of reports) {
    const restored = isLost(budgets, claim, context.nowUs) ? known : [];
    joinBudget(budgets, claim, context);
    budgets.open(claim.key).report(context.process, claim, { sent, sentAgoUs, known: restored }, context.nowUs);
  }
}

export function leaseAll(
  budgets: Budgets,
  requests: readonly LeaseRequest[],
  context: ExchangeContext,
): readonly LeaseReply[] {
  const shortfall = new Shortfall();
  const replies = requests.map(request => lease(budgets, request, context, shortfall));
  shortfall.record(budgets, context);
  return replies;
}

function lease(
  budgets: Budgets,
  { claims, least, most, aheadMs = 0, wantsUse = false }: LeaseRequest,
  context: ExchangeContext,
  shortfall: Shortfall,
): LeaseReply {
  const { process, nowUs } = context;
  const lost = claims.find(claim => isLost(budgets, claim, nowUs));
  if (lost !== undefined) return { kind: "wait", waitMs: 0.001, key: lost.key, isStricter: false, isLost: true };
  const isStricter = claims.map(claim => joinBudget(budgets, claim, context)).includes(true);
  const demand = { least, most, aheadUs: aheadMs * 1000 };
  const offers = claims.map(claim => budgets.open(claim.key).offer(process, claim, demand, nowUs));
  const freeNow = Math.min(most, ...offers.map(({ units }) => units));
  const usableUs = Math.max(nowUs, ...offers.map(offer => offer.usableUs ?? Number.POSITIVE_INFINITY));
  const isAhead = freeNow === 0 && usableUs <= nowUs + demand.aheadUs;
  const units = isAhead ? least : freeNow;
  if (units > 0) for (const { key } of claims) budgets.open(key).reserve(process, units, nowUs);
  let binding: { key: string; dueUs: number } = { key: claims[0]?.key ?? "", dueUs: nowUs };
  for (const [index, { key }] of claims.entries()) {
    const budget = budgets.open(key);
    const isBinding = units < most && offers[index]?.units === freeNow;
    const dueUs = isBinding ? Math.max(nowUs, budget.dueUs(process, least, nowUs)) : nowUs;
    if (isBinding && dueUs > binding.dueUs) binding = { key, dueUs };
    // If a process got some units and no other process waits, it gets no turn for the rest. So a process that asks next
    // does not queue behind it.
    const isWaiting = isBinding && (units === 0 || budget.othersWait(process));
    shortfall.add(key, isWaiting ? demand : undefined, dueUs);
  }
  const use = wantsUse ? { use: useOf(budgets, claims, nowUs) } : {};
  const nextMs = Math.max(1, binding.dueUs - nowUs) / 1000;
  if (units === 0) return { kind: "wait", waitMs: nextMs, key: binding.key, isStricter, ...use };
  const delay = isAhead ? { delayMs: (usableUs - nowUs) / 1000 } : {};
  const alone = offers.every(({ isOnlyUser }) => isOnlyUser) ? { isOnlyUser: true as const } : {};
  return { kind: "granted", units, ...delay, ...(units < most ? { nextMs } : {}), ...alone, isStricter, ...use };
}

function isLost(budgets: Budgets, { key, knownAgoUs }: StoreClaim, nowUs: number): boolean {
  return knownAgoUs !== undefined && (budgets.find(key)?.isNewerThan(nowUs - knownAgoUs) ?? true);
}

function useOf(budgets: Budgets, claims: readonly StoreClaim[], nowUs: number): ClaimUse {
  return claims.map(claim => budgets.open(claim.key).usedUnits(claim, nowUs));
}

/** Registers the process and its claim; true when another process has claimed stricter limits. */
function joinBudget(budgets: Budgets, claim: StoreClaim, context: ExchangeContext): boolean {
  const { process, nowUs, leaseUs, dead } = context;
  const budget = budgets.open(claim.key);
  budget.join(process, claim, nowUs + leaseUs, nowUs, dead);
  return budget.isStricterThan(claim);
}

/**
 * The budgets that had too few units for the process, over all its requests. The process counts as waiting only in
 * these budgets. If it counted as waiting in a budget with enough units too, the other processes would leave it a share
 * there that it cannot use while another budget delays it.
 */
class Shortfall {
  readonly #waits = new Map<string, { readonly demand: UnitDemand; readonly dueUs: number } | undefined>();

  /** `demand` is undefined if the budget had enough units. */
  add(key: string, demand: UnitDemand | undefined, dueUs: number): void {
    const known = this.#waits.get(key);
    if (demand === undefined || (known !== undefined && known.dueUs > dueUs)) this.#waits.set(key, known);
    else this.#waits.set(key, { demand, dueUs });
  }

  record(budgets: Budgets, { process, nowUs }: ExchangeContext): void {
    for (const [key, wait] of this.#waits)
      budgets.open(key).setWaiting(process, wait?.demand, wait?.dueUs ?? nowUs, nowUs);
  }
}

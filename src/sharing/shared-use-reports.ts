import type { Budget } from "../limiter/budget.ts";
import type { TakenOver } from "../limiter/recount.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import { knownUse, saidUse } from "../limiter/shared-use.ts";
import type { ClaimUse, StoreClaim, UseReport } from "../stores/store.ts";
import { takeFirst } from "./exchange-parts.ts";

/** The last reported use is remembered for at most this many role budgets. The oldest is dropped first. */
const KNOWN_MAX = 4096;

/** Units that were sent without a lease, and when the newest of them was written. */
interface UnleasedUnits {
  readonly units: number;
  readonly lastUs: number;
}

const NONE_SENT: UnleasedUnits = { units: 0, lastUs: 0 };

function added(sum: UnleasedUnits = NONE_SENT, units: number, lastUs: number): UnleasedUnits {
  return units === 0 ? sum : { units: sum.units + units, lastUs: Math.max(sum.lastUs, lastUs) };
}

/** Reports that were taken for one exchange: exactly one of the two functions is to be called. */
export interface TakenReports {
  readonly reports: readonly UseReport[];
  /** The store has the reports; its reply arrived at `atUs`. */
  delivered(atUs: number): void;
  failed(): void;
}

/**
 * What this process has to report about shared budgets: units that it sent without a lease, and, in case the store has
 * lost its data, the use that the store has reported before. Reports are collected, and then taken in parts.
 */
export class SharedUseReports {
  #sent = new Map<RoleBudget, UnleasedUnits>();
  /** Units that budgets have taken over from others since a reload, and that are not reported yet. */
  #takenOver: TakenOver[] = [];
  readonly #known = new Set<RoleBudget>();
  /** Collected and not taken yet. */
  readonly #collected = new Map<RoleBudget, UnleasedUnits>();

  get hasSent(): boolean {
    return this.#sent.size + this.#takenOver.length > 0;
  }

  /** Whether reports were collected that `take` has not returned yet. */
  get hasCollected(): boolean {
    return this.#collected.size + this.#takenOver.length > 0;
  }

  /** Since a reload, the budget counts units that the store does not count for it. */
  takenOver(one: TakenOver): void {
    if (one.units > 0 && one.budget.windows.length > 0) this.#takenOver.push(one);
  }

  /** Units were sent without a lease, the newest of them at `lastUs`. */
  sent(roleBudget: RoleBudget, { units, lastUs }: UnleasedUnits): void {
    this.#sent.set(roleBudget, added(this.#sent.get(roleBudget), units, lastUs));
  }

  /** The store has reported the use of this role budget. */
  known(roleBudget: RoleBudget, nowUs: number): void {
    this.#known.delete(roleBudget);
    this.#known.add(roleBudget);
    for (const oldest of this.#known) {
      if (this.#known.size <= KNOWN_MAX && isUseful(oldest, nowUs)) break;
      this.#known.delete(oldest);
    }
  }

  /** Collects the units that were sent, to be taken first, and with `withKnown` also all use that is known. */
  collect(withKnown: boolean): void {
    const before = [...this.#collected];
    this.#collected.clear();
    for (const [roleBudget, { units, lastUs }] of [...this.#sent, ...before]) this.#collect(roleBudget, units, lastUs);
    this.#sent.clear();
    if (withKnown) for (const roleBudget of this.#known) this.#collect(roleBudget, 0, 0);
  }

  /** The next collected reports, of at most `most` role budgets. */
  take(nowUs: number, most: number): TakenReports {
    const sent = takeFirst(this.#collected, most);
    const takenOver = this.#takenOver.slice(0, most - sent.length);
    this.#takenOver = this.#takenOver.slice(takenOver.length);
    const reported = new Map<Budget, { keys: readonly string[]; sent: UnleasedUnits }>();
    for (const [roleBudget, { units, lastUs }] of sent) {
      const budgets = sharedBudgets(roleBudget);
      const keys = budgets.map(({ storeKey }) => storeKey);
      for (const budget of budgets)
        reported.set(budget, { keys, sent: added(reported.get(budget)?.sent, units, lastUs) });
    }
    for (const { budget, roleBudget, units } of takenOver) {
      const keys = sharedBudgets(roleBudget).map(({ storeKey }) => storeKey);
      reported.set(budget, { keys, sent: added(reported.get(budget)?.sent, units, nowUs) });
    }
    const reports = Array.from(reported, ([budget, { keys, sent: unleased }]) => ({
      claim: claimOf(budget, nowUs),
      keys,
      sent: unleased.units,
      sentAgoUs: unleased.units > 0 ? Math.max(0, nowUs - unleased.lastUs) : 0,
      known: knownUse(budget.claimedWindows, budget.sharedUse, nowUs),
      lastReplied: saidUse(budget.claimedWindows, budget.sharedUse, nowUs),
    }));
    return {
      reports,
      delivered: atUs => {
        // A store that had lost its data has it again. From now on the process can detect another loss.
        for (const [index, budget] of [...reported.keys()].entries()) {
          const { known = [], sent: units = 0 } = reports[index] ?? {};
          budget.sharedUse = { sentUs: nowUs, atUs, used: known.map(used => used + units) };
          budget.sharedContactUs = atUs;
        }
      },
      failed: () => {
        for (const [roleBudget, { units, lastUs }] of sent) this.#collect(roleBudget, units, lastUs);
        this.#takenOver = [...takenOver, ...this.#takenOver];
      },
    };
  }

  #collect(roleBudget: RoleBudget, units: number, lastUs: number): void {
    this.#collected.set(roleBudget, added(this.#collected.get(roleBudget), units, lastUs));
  }
}

/** Store keys and limits of the budgets that apply. Budgets without windows are not shared. */
export function claimsOf(roleBudget: RoleBudget, nowUs: number): readonly StoreClaim[] {
  return sharedBudgets(roleBudget).map(budget => claimOf(budget, nowUs));
}

/** Keeps what the store has reported about the use of each budget that was claimed and still applies. */
export function applyUse(
  roleBudget: RoleBudget,
  claims: readonly StoreClaim[],
  use: ClaimUse,
  sentUs: number,
  atUs: number,
): void {
  for (const budget of sharedBudgets(roleBudget)) {
    const index = claims.findIndex(({ key }) => key === budget.storeKey);
    if (index >= 0) budget.sharedUse = { sentUs, atUs, used: use[index] ?? [] };
  }
}

/** The store has granted units of all claimed budgets, or has said that the budget `fullKey` has none free. */
export function applyContact(
  roleBudget: RoleBudget,
  claims: readonly StoreClaim[],
  fullKey: string | undefined,
  nowUs: number,
): void {
  for (const budget of sharedBudgets(roleBudget)) {
    const isKnown =
      fullKey === undefined ? claims.some(({ key }) => key === budget.storeKey) : budget.storeKey === fullKey;
    if (isKnown) budget.sharedContactUs = nowUs;
  }
}

function claimOf(budget: Budget, nowUs: number): StoreClaim {
  const { storeKey: key, claimedWindows, policy } = budget;
  const { rates } = policy.undivided ?? policy;
  const spacingUs = policy.undivided?.spacingUs ?? budget.spacingUs;
  const claimed = claimedWindows.map(({ limit, spanUs }, index) => ({
    limit,
    spanUs,
    windowUs: rates[index]?.windowUs ?? spanUs,
  }));
  const knownAgoUs = ageOfUse(budget, nowUs);
  return { key, windows: claimed, spacingUs, ...(knownAgoUs === undefined ? {} : { knownAgoUs }) };
}

/** A store keeps a budget for longer than this after the last contact, even if no unit of it is in use any more. */
export const KEPT_US = 20_000_000;

/** How long ago the store last reported the use of a budget; undefined if none of the used units can still count. */
function ageOfUse({ sharedUse, sharedContactUs, claimedWindows }: Budget, nowUs: number): number | undefined {
  const contactAgoUs = nowUs - sharedContactUs;
  if (contactAgoUs < KEPT_US) return contactAgoUs;
  if (sharedUse === undefined) return undefined;
  const ageUs = nowUs - sharedUse.atUs;
  const mayStillCount = claimedWindows.some(({ spanUs }, index) => ageUs < spanUs && (sharedUse.used[index] ?? 0) > 0);
  return mayStillCount ? ageUs : undefined;
}

function isUseful(roleBudget: RoleBudget, nowUs: number): boolean {
  return sharedBudgets(roleBudget).some(budget => ageOfUse(budget, nowUs) !== undefined);
}

function sharedBudgets(roleBudget: RoleBudget): readonly Budget[] {
  const budgets: Budget[] = [];
  for (let at: Budget | undefined = roleBudget; at; at = at.above) if (at.windows.length > 0) budgets.push(at);
  return budgets;
}

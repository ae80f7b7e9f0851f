import { type Window, WindowLog } from "../core/limits/window-log.ts";
import type { LimitPart, Role } from "../policy/roles.ts";

/** A log, and the windows that it was written for. */
export interface LoggedUnits {
  readonly log: WindowLog;
  readonly windows: readonly Window[];
}

/** What a budget has sent, in requests and in other units. */
export interface SentUnits extends LoggedUnits {
  readonly costLogs: readonly (LoggedUnits & { readonly unit: string })[];
}

export interface FormerBudget<Part extends LimitPart = Role> extends SentUnits {
  readonly name: string;
  readonly role: Part;
  /** Nothing is sent before this instant. Absent for a budget that was evicted: its hold is over. */
  readonly holdUntilUs?: number;
  /** The limits of this name were divided by partition since then: each partition counts these units. */
  readonly isDivided?: true;
}

/** Older requests no longer count, also if a later policy sets a longer window. That bounds the memory. */
const KEPT_US = 24 * 3_600_000_000;
const KEPT_MAX = 65_536;

/**
 * The units that budgets of a kind have sent before they were evicted, or replaced by a reload. A later policy may count them
 * again in a longer window or in another budget (law L1). They are kept for a day, for at most 65,536 budgets.
 */
export class SentHistory<Part extends LimitPart = Role> {
  readonly #former = new Map<string, FormerBudget<Part>>();

  /** The budget is gone. With `isBrief`, only the number of its units and the time of the last one are kept. */
  add(former: FormerBudget<Part>, isBrief: boolean): void {
    const { name, role, log, costLogs } = former;
    if (log.written === 0) return;
    const key = keyOf(name, role);
    // The oldest entry is first: an entry that is replaced moves to the end.
    this.#former.delete(key);
    const brief = () => ({
      name,
      role,
      ...briefly(log),
      costLogs: costLogs.map(({ unit, log: ofUnit }) => ({ unit, ...briefly(ofUnit) })),
    });
    this.#former.set(key, isBrief ? brief() : former);
    for (const oldest of this.#former.keys()) {
      if (this.#former.size <= KEPT_MAX) return;
      this.#former.delete(oldest);
    }
  }

  /** Removes and returns what the former budget of this name sent: the new budget counts it from now on. */
  take(name: string, role: Part, nowUs: number): FormerBudget<Part> | undefined {
    const key = keyOf(name, role);
    const former = this.#former.get(key);
    this.#former.delete(key);
    return former !== undefined && isKept(nowUs)(former) ? former : undefined;
  }

  all(nowUs: number): readonly FormerBudget<Part>[] {
    return [...this.#former.values()].filter(isKept(nowUs));
  }

  /** Removes the budgets whose requests other budgets count now. */
  remove(isCounted: (former: FormerBudget<Part>) => boolean): void {
    for (const [key, former] of this.#former) if (isCounted(former)) this.#former.delete(key);
  }
}

/** A log together with what others have sent. Only its own pending units can still be settled. */
export function absorbed({ log, windows }: LoggedUnits, sent: readonly LoggedUnits[]): WindowLog {
  const merged = WindowLog.merged(windows, [{ log, windows }, ...sent]);
  merged.pending = log.pending;
  return merged;
}

/** Whether a later policy may count the requests of a former budget again. */
export function isKept(nowUs: number): (former: LoggedUnits) => boolean {
  return ({ log }) => nowUs - log.lastUs < KEPT_US;
}

/** Until when a later policy may count the requests of a former budget again, or has to keep its hold. */
export function keptUntilUs({ log, holdUntilUs = 0 }: FormerBudget): number {
  return Math.max(log.lastUs + KEPT_US, holdUntilUs);
}

/** The units as they are now: the budget itself may send more. */
export function copyOf({ log, costLogs, windows, name, role, holdUntilUs, isDivided }: FormerBudget): FormerBudget {
  return {
    ...{ name, role, windows, log: WindowLog.restore(log.dump()) },
    costLogs: costLogs.map(cost => ({
      ...{ unit: cost.unit, windows: cost.windows },
      log: WindowLog.restore(cost.log.dump()),
    })),
    ...(holdUntilUs !== undefined && { holdUntilUs }),
    ...(isDivided && { isDivided }),
  };
}

function briefly({ written, lastUs }: WindowLog): LoggedUnits {
  return { windows: [], log: WindowLog.restore({ written, pending: 0, lastUs }) };
}

function keyOf(name: string, role: LimitPart): string {
  return `${role} ${name}`;
}

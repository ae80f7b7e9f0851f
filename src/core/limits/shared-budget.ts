/**
 * One budget that several processes share: a window log, and the units that each process has leased from it.
 *
 * A process requests units before it sends, and reports afterwards that they were written or are returned. Until then
 * they count as written now, for all processes (law L1). Each contact renews the lease of the process. When a process
 * dies, its lease ends, and its leased units count as written at that instant: the latest possible one.
 *
 * Processes may have different policies. For each window length the strictest limit of all live processes is applied.
 */
import { makeWindow, type Window, WindowLog, type WindowLogState } from "./window-log.ts";

/** One window of the policy of a process. */
export interface ClaimedWindow {
  readonly limit: number;
  /** Length in the policy; identifies the window. */
  readonly windowUs: number;
  /** Length with guard and pace. */
  readonly spanUs: number;
}

/** The limits that a process applies to this budget. */
export interface BudgetClaim {
  readonly windows: readonly ClaimedWindow[];
  /** Minimum distance between two sends of a smoothed budget; 0 for none. */
  readonly spacingUs: number;
}

/** How many units a process requests: at least `least` or none, at most `most`. */
export interface UnitDemand {
  readonly least: number;
  readonly most: number;
}

/** The state of one process in this budget. */
interface BudgetMember {
  claim: BudgetClaim;
  /** Leased units, neither written nor returned yet. */
  pending: number;
  leaseUs: number;
  /** Whether it requested more units than it got. */
  isWaiting?: boolean | undefined;
  /** When a process that is waiting will request again; undefined when it always got what it requested. */
  nextRequestUs?: number | undefined;
  /** Units it got so far; the waiting process with the lowest usage goes first. */
  usage: number;
}

export interface BudgetState {
  readonly log: WindowLogState;
  readonly windows: readonly Window[];
  readonly lengthsUs: readonly number[];
  readonly members: Readonly<Record<string, BudgetMember>>;
  /** When the budget was created; missing in states of older versions. */
  readonly createdUs?: number | undefined;
}

/** A waiting process that is this late with its next request no longer counts as waiting. */
const WAITING_TIMEOUT_US = 2_000_000;
/** How long a free unit is reserved for waiting processes with lower usage. */
const TURN_US = 20_000;

export class SharedBudget {
  readonly #log: WindowLog;
  readonly #members: Map<string, BudgetMember>;
  #windows: readonly Window[];
  #lengthsUs: readonly number[];
  #createdUs: number | undefined;

  constructor(state?: BudgetState) {
    this.#log = state === undefined ? new WindowLog() : WindowLog.restore(state.log);
    this.#windows = state?.windows ?? [];
    this.#lengthsUs = state?.lengthsUs ?? [];
    this.#createdUs = state === undefined ? undefined : (state.createdUs ?? 0);
    this.#members = new Map(Object.entries(state?.members ?? {}).map(([name, member]) => [name, { ...member }]));
  }

  dump(): BudgetState {
    return {
      log: this.#log.dump(),
      windows: this.#windows,
      lengthsUs: this.#lengthsUs,
      members: Object.fromEntries(this.#members),
      createdUs: this.#createdUs,
    };
  }

  /** Adds a process or updates its claim and lease. Removes processes whose lease has ended. */
  join(processId: string, claim: BudgetClaim, leaseUs: number, nowUs: number): void {
    this.#createdUs ??= nowUs;
    const existing = this.#members.get(processId);
    if (existing === undefined) this.#members.set(processId, { claim, pending: 0, leaseUs, usage: 0 });
    else Object.assign(existing, { claim, leaseUs });
    for (const [name, member] of this.#members) {
      if (member.leaseUs > nowUs) continue;
      // A process sends nothing after its lease ends, so that is the latest possible write; stamps never decrease.
      const atUs = Math.max(this.#log.lastUs, member.leaseUs);
      if (member.pending > 0) this.#log.writeReserved(this.#windows, member.pending, atUs);
      this.#members.delete(name);
    }
    this.#applyStrictestClaims();
  }

  /** Whether this budget did not exist at that instant: the store has lost the one that a process knew then. */
  isNewerThan(us: number): boolean {
    return (this.#createdUs ?? Number.POSITIVE_INFINITY) > us;
  }

  /** Units that count now in each window of a claim, leased ones included. */
  usedUnits({ windows }: BudgetClaim, nowUs: number): readonly number[] {
    return windows.map(({ windowUs }) => {
      const index = this.#lengthsUs.indexOf(windowUs);
      const window = this.#windows[index];
      return window === undefined ? 0 : this.#log.usedUnits(index, window, nowUs);
    });
  }

  /**
   * Counts what a process reports: units that it sent without a lease, and, if the store has lost its data, the units
   * that the process knows were used in each window of its claim. Both count as written now.
   */
  report(claim: BudgetClaim, sent: number, known: readonly number[], nowUs: number): void {
    if (sent > 0) this.#log.write(this.#windows, sent, nowUs);
    const used = this.usedUnits(claim, nowUs);
    const missing = Math.max(0, ...known.map((units, index) => units - (used[index] ?? 0)));
    if (missing > 0) this.#log.write(this.#windows, missing, nowUs);
  }

  /** Extends the lease of a process that has joined. */
  renew(processId: string, leaseUs: number): void {
    const member = this.#members.get(processId);
    if (member !== undefined) member.leaseUs = leaseUs;
  }

  /** True when the limits of another process are stricter than these. */
  isStricterThan({ windows, spacingUs }: BudgetClaim): boolean {
    if (this.#spacingUs() > spacingUs) return true;
    return this.#windows.some(({ limit, spanUs }, index) => {
      const own = windows.find(({ windowUs }) => windowUs === this.#lengthsUs[index]);
      return own === undefined || limit < own.limit || spanUs > own.spanUs;
    });
  }

  /** Units that a process may lease now: its share while others are waiting, and none while it is their turn. */
  availableUnits(processId: string, { least, most }: UnitDemand, nowUs: number): number {
    const spacingUs = this.#spacingUs();
    const freeUs = this.#log.earliestUs(this.#windows, spacingUs, least, nowUs);
    if (freeUs > nowUs) return 0;
    const free = Math.min(...this.#windows.map((w, index) => w.limit - this.#log.usedUnits(index, w, nowUs)));
    // With even spacing only one send is due at a time.
    const atOnce = Math.min(spacingUs > 0 ? least : free, most);
    const others = this.#waitingOthers(processId, nowUs);
    if (others.length === 0) return atOnce;
    const usage = this.#members.get(processId)?.usage ?? 0;
    const before = others.filter(other => other.usage < usage).length;
    if (free <= before && nowUs - freeUs < TURN_US) return 0;
    return Math.min(atOnce, Math.max(least, Math.ceil(free / (others.length + 1))));
  }

  reserve(processId: string, units: number): void {
    const member = this.#members.get(processId);
    if (member === undefined) return;
    member.pending += units;
    member.usage += units;
    this.#log.reserve(units);
  }

  /**
   * Records whether a process requested more than it got, so that the others leave it its share, and when it will
   * request again: until then it counts as waiting.
   */
  setWaiting(processId: string, isWaiting: boolean, nowUs: number, nextRequestUs: number = nowUs): void {
    const member = this.#members.get(processId);
    if (member === undefined) return;
    const others = this.#waitingOthers(processId, nowUs);
    // A process that starts waiting inherits the lowest usage of the other waiting processes, so past usage gives no
    // process priority. A process that was idle only for a moment keeps its usage.
    if (isWaiting && !wasWaiting(member, nowUs) && others.length > 0)
      member.usage = Math.min(...others.map(({ usage }) => usage));
    member.isWaiting = isWaiting;
    if (isWaiting) member.nextRequestUs = nextRequestUs;
  }

  /** When `least` units could be leased; one turn later while other processes are waiting. */
  earliestUs(processId: string, least: number, nowUs: number): number {
    const freeUs = this.#log.earliestUs(this.#windows, this.#spacingUs(), least, nowUs);
    return freeUs > nowUs || this.#waitingOthers(processId, nowUs).length === 0
      ? freeUs
      : Math.max(nowUs, freeUs + TURN_US);
  }

  /** Leased units were written now, or are returned. Units of a lease that has ended were counted already. */
  settle(processId: string, written: number, returned: number, nowUs: number): void {
    const member = this.#members.get(processId);
    if (member === undefined) return;
    const writtenUnits = Math.min(written, member.pending);
    if (writtenUnits > 0) this.#log.writeReserved(this.#windows, writtenUnits, nowUs);
    const returnedUnits = Math.min(returned, member.pending - writtenUnits);
    this.#log.giveBack(returnedUnits);
    member.pending -= writtenUnits + returnedUnits;
    member.usage -= returnedUnits;
  }

  /** True when this budget can no longer delay a request, so that it may be deleted. */
  isExpired(nowUs: number): boolean {
    let lastUs = this.#log.written > 0 ? this.#log.lastUs : Number.NEGATIVE_INFINITY;
    for (const { pending, leaseUs } of this.#members.values()) {
      if (leaseUs > nowUs) return false;
      if (pending > 0) lastUs = Math.max(lastUs, leaseUs);
    }
    const quietUs = nowUs - lastUs;
    return quietUs >= this.#spacingUs() && this.#windows.every(({ spanUs }) => quietUs >= spanUs);
  }

  #waitingOthers(processId: string, nowUs: number): readonly BudgetMember[] {
    const others: BudgetMember[] = [];
    for (const [name, member] of this.#members)
      if (name !== processId && member.isWaiting === true && wasWaiting(member, nowUs)) others.push(member);
    return others;
  }

  #spacingUs(): number {
    let widestUs = 0;
    for (const { claim } of this.#members.values()) widestUs = Math.max(widestUs, claim.spacingUs);
    return widestUs;
  }

  /** Applies the strictest limit of all live processes for each window length. */
  #applyStrictestClaims(): void {
    const strictest = new Map<number, { limit: number; spanUs: number }>();
    for (const { claim } of this.#members.values()) {
      for (const { limit, windowUs, spanUs } of claim.windows) {
        const existing = strictest.get(windowUs);
        if (existing === undefined) strictest.set(windowUs, { limit, spanUs });
        else
          strictest.set(windowUs, {
            limit: Math.min(existing.limit, limit),
            spanUs: Math.max(existing.spanUs, spanUs),
          });
      }
    }
    const isSame =
      strictest.size === this.#windows.length &&
      this.#windows.every(({ limit, spanUs }, index) => {
        const wanted = strictest.get(this.#lengthsUs[index] ?? 0);
        return wanted?.limit === limit && wanted.spanUs === spanUs;
      });
    if (isSame) return;
    const windows = Array.from(strictest.values(), ({ limit, spanUs }) => makeWindow(limit, spanUs));
    this.#log.replaceWindows(this.#windows, windows);
    this.#windows = windows;
    this.#lengthsUs = [...strictest.keys()];
  }
}

function wasWaiting({ nextRequestUs }: BudgetMember, nowUs: number): boolean {
  return nextRequestUs !== undefined && nowUs - nextRequestUs < WAITING_TIMEOUT_US;
}

/**
 * One budget that several processes share: a window log, and the units that each process has leased from it.
 *
 * A process requests units before it sends, and reports afterwards that they were written or are returned. Until then
 * they count as written now, for all processes (law L1). Each contact renews the lease of the process. When a process
 * dies, its lease ends at its time, or when another process reports the death. Its leased units count as written at that
 * instant: the latest possible one.
 *
 * Processes that want more than is free get turns in a queue (`turn-queue.ts`). Processes may have different policies:
 * for each window length the strictest limit of all live processes is applied.
 */
import { type BudgetClaim, type ClaimCount, ClaimCounts, claimText } from "./budget-claim.ts";
import { type BudgetMember, type BudgetTables, emptyTables } from "./budget-tables.ts";
import { LeaseList, type LeaseListState } from "./lease-list.ts";
import { TurnQueue, type TurnQueueState } from "./turn-queue.ts";
import { makeWindow, type Window, WindowLog, type WindowLogState } from "./window-log.ts";

/** How many units a process requests: at least `least` or none, at most `most`. */
export interface UnitDemand {
  readonly least: number;
  readonly most: number;
  /** Units that become free within this time are of use too. @default 0 */
  readonly aheadUs?: number | undefined;
}

/** Units that a process has sent, or knows of, and that the store may not know. */
export interface ReportedUnits {
  readonly sent: number;
  /** Time since the newest unit of `sent` was written. */
  readonly sentAgoUs: number;
  /** Units that the process knows were used, for each window of its claim. Empty if the store has lost nothing. */
  readonly known: readonly number[];
}

/** The units that a process can lease. */
export interface UnitOffer {
  /** Units that it may lease for use now; 0 if there are too few, or if it is the turn of others. */
  readonly units: number;
  /** From when it may use `least` units that it leases now; undefined if that cannot be known. */
  readonly usableUs: number | undefined;
  /** No other process uses or waits for units. Only known with `aheadUs`. */
  readonly isOnlyUser: boolean;
}

/** The budget without its tables. */
export interface BudgetState {
  readonly log: WindowLogState;
  readonly windows: readonly Window[];
  readonly lengthsUs: readonly number[];
  readonly spacingUs: number;
  readonly claims: readonly ClaimCount[];
  readonly turns: TurnQueueState;
  readonly leases: LeaseListState;
  /** When the budget was created; -1 if no process has joined yet. */
  readonly createdUs: number;
  /** By then every lease and every turn has ended, unless it is renewed. */
  readonly aliveUs: number;
  /** The process that has written the newest unit; empty if it is not known. */
  readonly writer: string;
  /** When the newest unit of another process than `writer` was written. */
  readonly othersUs?: number | undefined;
}

/** How long free units are reserved for the processes whose turn it is, when there are enough for them. */
const TURN_US = 20_000;
/** A process takes its share of a window in this many turns, so that it sends evenly and needs few exchanges. */
const TURNS_PER_WINDOW = 4;
/** A turn is due at the latest after this time. A process that asks later has lost it, and gets a new one. */
const MAX_TURN_US = 120_000_000;

export class SharedBudget {
  readonly #tables: BudgetTables;
  readonly #log: WindowLog;
  readonly #claims: ClaimCounts;
  readonly #turns: TurnQueue;
  readonly #leases: LeaseList;
  #windows: readonly Window[];
  #lengthsUs: readonly number[];
  #spacingUs: number;
  #createdUs: number;
  #aliveUs: number;
  #writer: string;
  #othersUs: number | undefined;

  constructor(state?: BudgetState, tables = emptyTables()) {
    this.#tables = tables;
    this.#log = state === undefined ? new WindowLog() : WindowLog.restore(state.log);
    this.#claims = new ClaimCounts(state?.claims);
    this.#turns = new TurnQueue(tables, state?.turns);
    this.#leases = new LeaseList(tables, state?.leases);
    this.#windows = state?.windows ?? [];
    this.#lengthsUs = state?.lengthsUs ?? [];
    this.#spacingUs = state?.spacingUs ?? 0;
    this.#createdUs = state?.createdUs ?? -1;
    this.#aliveUs = state?.aliveUs ?? -1;
    this.#writer = state?.writer ?? "";
    this.#othersUs = state?.othersUs;
  }

  dump(): BudgetState {
    return {
      log: this.#log.dump(),
      windows: this.#windows,
      lengthsUs: this.#lengthsUs,
      spacingUs: this.#spacingUs,
      claims: this.#claims.dump(),
      turns: this.#turns.dump(),
      leases: this.#leases.dump(),
      createdUs: this.#createdUs,
      aliveUs: this.#aliveUs,
      writer: this.#writer,
      othersUs: this.#othersUs,
    };
  }

  /**
   * Adds a process or updates its claim and lease. Removes processes whose lease has ended.
   * @param dead processes that have ended, whose leases end now. @default none
   */
  join(processId: string, claim: BudgetClaim, leaseUs: number, nowUs: number, dead: readonly string[] = []): void {
    if (this.#createdUs < 0) this.#createdUs = nowUs;
    const text = claimText(claim);
    let member = this.#tables.members.get(processId);
    let isChanged = false;
    if (member === undefined) {
      member = { claim: text, pending: 0, leaseUs, entry: 0, entryUs: 0 };
      this.#tables.members.set(processId, member);
      isChanged = this.#claims.add(text);
    } else if (member.claim !== text) {
      const isGone = this.#claims.remove(member.claim);
      isChanged = this.#claims.add(text) || isGone;
      member.claim = text;
    }
    this.#renew(processId, member, leaseUs, nowUs);
    this.#leases.expire(nowUs, leaseUs - nowUs, (name, ended) => {
      this.#countPending(name, ended, ended.leaseUs);
      if (TurnQueue.keptUntilUs(ended) > nowUs) return true;
      if (this.#remove(name, ended, nowUs)) isChanged = true;
      return false;
    });
    for (const name of dead) {
      const ended = this.#tables.members.get(name);
      if (ended === undefined || name === processId) continue;
      this.#countPending(name, ended, nowUs);
      if (this.#remove(name, ended, nowUs)) isChanged = true;
    }
    if (isChanged) this.#applyStrictestClaims();
  }

  /** Whether this budget did not exist at that instant: the store has lost the one that a process knew then. */
  isNewerThan(instantUs: number): boolean {
    return this.#createdUs < 0 || this.#createdUs > instantUs;
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
   * Counts what a process reports. Units that it sent without a lease count as written when the newest of them was. If
   * the store has lost its data, the process also knows how many units were used in each window of its claim: those that
   * are missing here count as written now.
   */
  report(processId: string, claim: BudgetClaim, { sent, sentAgoUs, known }: ReportedUnits, nowUs: number): void {
    if (sent > 0) this.#write(processId, sent, nowUs - sentAgoUs, 0);
    const used = this.usedUnits(claim, nowUs);
    const missing = Math.max(0, ...known.map((units, index) => units - (used[index] ?? 0)));
    // Without a process id: they may be units of any process.
    if (missing > 0) this.#write("", missing, nowUs, 0);
  }

  /** Extends the lease of a process that has joined. */
  renew(processId: string, leaseUs: number, nowUs: number): void {
    const member = this.#tables.members.get(processId);
    if (member !== undefined) this.#renew(processId, member, leaseUs, nowUs);
  }

  /** True when the limits of another process are stricter than these. */
  isStricterThan({ windows, spacingUs }: BudgetClaim): boolean {
    if (this.#spacingUs > spacingUs) return true;
    return this.#windows.some(({ limit, spanUs }, index) => {
      const own = windows.find(({ windowUs }) => windowUs === this.#lengthsUs[index]);
      return own === undefined || limit < own.limit || spanUs > own.spanUs;
    });
  }

  /** The units that a process can have now: its share while others wait, and none while it is the turn of another. */
  offer(processId: string, claim: BudgetClaim, demand: UnitDemand, nowUs: number): UnitOffer {
    const member = this.#memberOf(processId);
    const { least, most, aheadUs = 0 } = demand;
    this.#turns.prune(nowUs);
    const others = this.#turns.othersWaiting(member);
    const unitsBefore = this.#turns.unitsBefore(member);
    const freeUs = this.#log.earliestUs(this.#windows, this.#spacingUs, least, nowUs);
    const mayLookAhead = aheadUs > 0 && others === 0 && this.#spacingUs === 0 && !this.isStricterThan(claim);
    const isOnlyUser = mayLookAhead && this.#isOnlyUser(processId, member, nowUs);
    const free = this.#freeUnits(processId, isOnlyUser ? aheadUs : 0, nowUs);
    const isFree = freeUs <= nowUs || (isOnlyUser && free >= least);
    // With even spacing only one send is due at a time.
    if (isFree && others === 0)
      return { units: Math.min(this.#spacingUs > 0 ? least : free, most), usableUs: nowUs, isOnlyUser };
    if (isFree && free - unitsBefore >= least)
      return { units: Math.min(free - unitsBefore, this.#turnUnits(demand, others)), usableUs: nowUs, isOnlyUser };
    const isNext = this.#hasUnitsForAll(unitsBefore, least, aheadUs, nowUs);
    if (isFree && (isNext || this.#reservedUntilUs(least, unitsBefore, nowUs) <= nowUs))
      return { units: least, usableUs: nowUs, isOnlyUser };
    return { units: 0, usableUs: isNext && !isFree ? freeUs : undefined, isOnlyUser };
  }

  othersWait(processId: string): boolean {
    return this.#turns.othersWaiting(this.#memberOf(processId)) > 0;
  }

  /** Leases units to a process. Its turn is over. */
  reserve(processId: string, units: number, nowUs: number): void {
    const member = this.#memberOf(processId);
    member.pending += units;
    this.#log.reserve(units);
    this.#turns.leave(member, nowUs);
  }

  /**
   * Records whether a process requested more than it got. If so, it has a turn in the queue, and asks again at `dueUs`.
   * If it needs more units than another process permits, it has none: units reserved for it would never be enough.
   */
  setWaiting(processId: string, demand: UnitDemand | undefined, dueUs: number, nowUs: number): void {
    const member = this.#memberOf(processId);
    if (demand === undefined || demand.least > this.#smallestLimit) {
      this.#turns.leave(member, nowUs);
      return;
    }
    const units = this.#turnUnits(demand, this.#turns.othersWaiting(member));
    this.#turns.join(processId, member, units, Math.min(dueUs, nowUs + MAX_TURN_US));
    this.#aliveUs = Math.max(this.#aliveUs, TurnQueue.keptUntilUs(member));
  }

  /** When a process that gets nothing now can expect `least` units, if all before it take theirs on time. */
  dueUs(processId: string, least: number, nowUs: number): number {
    const member = this.#memberOf(processId);
    const freeUs = this.#log.earliestUs(this.#windows, this.#spacingUs, least, nowUs);
    if (this.#turns.othersWaiting(member) === 0) return freeUs;
    const unitsBefore = this.#turns.unitsBefore(member);
    const expectedUs =
      unitsBefore === 0 ? freeUs : this.#log.expectedUs(this.#windows, this.#spacingUs, unitsBefore + least, nowUs);
    return expectedUs > nowUs ? expectedUs : Math.max(nowUs, this.#reservedUntilUs(least, unitsBefore, nowUs));
  }

  /** Leased units were written now, or are returned. Units of a lease that has ended were counted already. */
  settle(processId: string, written: number, returned: number, nowUs: number): void {
    const member = this.#tables.members.get(processId);
    if (member === undefined) return;
    const writtenUnits = Math.min(written, member.pending);
    if (writtenUnits > 0) this.#write(processId, writtenUnits, nowUs, writtenUnits);
    const returnedUnits = Math.min(returned, member.pending - writtenUnits);
    this.#log.giveBack(returnedUnits);
    member.pending -= writtenUnits + returnedUnits;
  }

  /** Units that a process has leased, and neither written nor returned. */
  pendingOf(processId: string): number {
    return this.#tables.members.get(processId)?.pending ?? 0;
  }

  /** True when this budget can no longer delay a request, so that it may be deleted. */
  isExpired(nowUs: number): boolean {
    if (this.#aliveUs > nowUs) return false;
    let lastUs = this.#log.written > 0 ? this.#log.lastUs : Number.NEGATIVE_INFINITY;
    if (this.#log.pending > 0) lastUs = Math.max(lastUs, this.#aliveUs);
    const quietUs = nowUs - lastUs;
    return quietUs >= this.#spacingUs && this.#windows.every(({ spanUs }) => quietUs >= spanUs);
  }

  #memberOf(processId: string): BudgetMember {
    const member = this.#tables.members.get(processId);
    if (member === undefined) throw new RangeError(`${processId} has not joined the budget`);
    return member;
  }

  /** A process sends nothing after its lease ends, so that is the latest possible write; stamps never decrease. */
  #countPending(processId: string, member: BudgetMember, endUs: number): void {
    if (member.pending === 0) return;
    this.#write(processId, member.pending, Math.max(this.#log.lastUs, endUs), member.pending);
    member.pending = 0;
  }

  /** True if no other process makes the claim of the removed one. */
  #remove(processId: string, member: BudgetMember, nowUs: number): boolean {
    this.#turns.leave(member, nowUs);
    this.#tables.members.delete(processId);
    return this.#claims.remove(member.claim);
  }

  #renew(processId: string, member: BudgetMember, leaseUs: number, nowUs: number): void {
    this.#leases.renew(processId, member, leaseUs, nowUs);
    this.#aliveUs = Math.max(this.#aliveUs, leaseUs);
  }

  #write(processId: string, units: number, atUs: number, reserved: number): void {
    if (this.#writer !== processId || processId === "") {
      this.#othersUs = this.#lastUs;
      this.#writer = processId;
    }
    this.#log.giveBack(reserved);
    this.#log.write(this.#windows, units, atUs);
  }

  /** When the newest unit was written; undefined if there is none. */
  get #lastUs(): number | undefined {
    return this.#log.written > 0 ? this.#log.lastUs : undefined;
  }

  /** When the newest unit of another process was written; undefined if there is none. */
  #othersUsOf(processId: string): number | undefined {
    return this.#writer === processId ? this.#othersUs : this.#lastUs;
  }

  /** Whether all units of the shortest window are of this process. */
  #isOnlyUser(processId: string, { pending }: BudgetMember, nowUs: number): boolean {
    const shortestUs = Math.min(...this.#windows.map(({ spanUs }) => spanUs));
    return pending === this.#log.pending && isPast(this.#othersUsOf(processId), shortestUs, nowUs);
  }

  /**
   * Free units over all windows. With `aheadUs`, a window that counts no units of others has more: those its limit allows
   * in that time. The process applies it by its own clock and its own log, so it needs no reply of the store at each of
   * these instants.
   */
  #freeUnits(processId: string, aheadUs: number, nowUs: number): number {
    const othersUs = this.#othersUsOf(processId);
    let free = Number.POSITIVE_INFINITY;
    for (const [index, window] of this.#windows.entries()) {
      const { limit, spanUs } = window;
      const soonFree = isPast(othersUs, spanUs, nowUs) ? Math.floor((limit * aheadUs) / spanUs) : 0;
      free = Math.min(free, limit - this.#log.usedUnits(index, window, nowUs) + soonFree);
    }
    return free;
  }

  /**
   * Whether the units of this process and of all before it in the queue are known to be usable within `aheadUs`. Then it
   * gets the first of them. Each of the others gets its units when it asks. So a process that asks a little before its turn
   * need not ask again, and one that asks late delays no other.
   */
  #hasUnitsForAll(unitsBefore: number, least: number, aheadUs: number, nowUs: number): boolean {
    const { pending } = this.#log;
    const units = unitsBefore + least;
    // Known only if the next units wait for written units, because a leased unit may be written at any time.
    const isKnown =
      (this.#spacingUs === 0 || pending === 0) && this.#windows.every(({ limit }) => pending + units <= limit);
    if (!isKnown || unitsBefore === 0) return isKnown;
    return this.#log.expectedUs(this.#windows, this.#spacingUs, units, nowUs) <= nowUs + aheadUs;
  }

  /**
   * Until when free units are reserved for the processes whose turns come before: a moment after all of them could have
   * theirs. A process that needs several units gets them only if no other one takes each as soon as it is free. It may be
   * due later than they are free, so that several units are also reserved until the first process is due.
   */
  #reservedUntilUs(least: number, unitsBefore: number, nowUs: number): number {
    const units = Math.max(least, Math.min(unitsBefore, this.#smallestLimit));
    const freeUs = this.#log.earliestUs(this.#windows, this.#spacingUs, units, nowUs);
    return (unitsBefore > 1 ? Math.max(freeUs, this.#turns.headDueUs) : freeUs) + TURN_US;
  }

  /** The units of one turn. */
  #turnUnits({ least, most }: UnitDemand, others: number): number {
    if (this.#spacingUs > 0) return least;
    return Math.max(least, Math.min(most, Math.floor(this.#smallestLimit / (TURNS_PER_WINDOW * (others + 1)))));
  }

  get #smallestLimit(): number {
    return Math.min(...this.#windows.map(({ limit }) => limit));
  }

  /** Applies the strictest limit of all live processes for each window length. */
  #applyStrictestClaims(): void {
    const { windows: strictest, spacingUs } = this.#claims.strictest();
    this.#spacingUs = spacingUs;
    const isSame =
      strictest.length === this.#windows.length &&
      this.#windows.every(({ limit, spanUs }, index) => {
        const wanted = strictest.find(({ windowUs }) => windowUs === this.#lengthsUs[index]);
        return wanted?.limit === limit && wanted.spanUs === spanUs;
      });
    if (isSame) return;
    const windows = strictest.map(({ limit, spanUs }) => makeWindow(limit, spanUs));
    this.#log.replaceWindows(this.#windows, windows);
    this.#windows = windows;
    this.#lengthsUs = strictest.map(({ windowUs }) => windowUs);
  }
}

/** Whether `spanUs` have passed since the instant, or there was none. */
function isPast(sinceUs: number | undefined, spanUs: number, nowUs: number): boolean {
  return sinceUs === undefined || sinceUs + spanUs <= nowUs;
}

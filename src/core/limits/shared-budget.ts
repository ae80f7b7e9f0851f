/**
 * One budget that several processes draw on: a window log, and what each process has out of it.
 *
 * A process asks for units before it sends, and says afterwards that they were written or come back. Until then they
 * count as written now, for everybody (law L1). Each contact renews its lease; when a process dies, its lease ends, and
 * what it had out counts as written at that moment: the latest at which it can have been.
 *
 * Processes may have different limits in mind. For each length of window the strictest of those alive is kept.
 */
import { makeWindow, type Window, WindowLog, type WindowLogState } from "./window-log.ts";

/** One window as a process wants it kept. */
export interface ClaimedWindow {
  readonly limit: number;
  /** The window as the policy names it: by this it is told apart from others. */
  readonly windowUs: number;
  /** With guard and pace. */
  readonly spanUs: number;
}

/** What a process wants to be kept. */
export interface BudgetClaim {
  readonly windows: readonly ClaimedWindow[];
  /** The least distance between two sends of a smoothed budget; 0 for none. */
  readonly spacingUs: number;
}

/** How many units are wanted: at least `least` or none at all, at most `most`. */
export interface UnitDemand {
  readonly least: number;
  readonly most: number;
}

/** What a process has to do with a budget. */
interface Member {
  claim: BudgetClaim;
  pending: number;
  leaseUs: number;
  /** Whether it wants more than it got. */
  isWaiting?: boolean | undefined;
  /** When one that wanted more last was to be back; undefined when it always got what it wanted. */
  nextRequestUs?: number | undefined;
  /** Units it got, to see whose turn it is. */
  usage: number;
}

export interface BudgetState {
  readonly log: WindowLogState;
  readonly windows: readonly Window[];
  readonly lengthsUs: readonly number[];
  readonly members: Readonly<Record<string, Member>>;
}

/** Who was told to wait and has not been back for so long has gone elsewhere. */
const WAITING_TIMEOUT_US = 2_000_000;
/** How long a unit that has become free is kept for those who have got less. */
const TURN_US = 20_000;

export class SharedBudget {
  readonly #log: WindowLog;
  readonly #members: Map<string, Member>;
  #windows: readonly Window[];
  #lengthsUs: readonly number[];

  constructor(state?: BudgetState) {
    this.#log = state === undefined ? new WindowLog() : WindowLog.restore(state.log);
    this.#windows = state?.windows ?? [];
    this.#lengthsUs = state?.lengthsUs ?? [];
    this.#members = new Map(Object.entries(state?.members ?? {}).map(([name, member]) => [name, { ...member }]));
  }

  dump(): BudgetState {
    return {
      log: this.#log.dump(),
      windows: this.#windows,
      lengthsUs: this.#lengthsUs,
      members: Object.fromEntries(this.#members),
    };
  }

  /** A process is here, wants these windows kept, and is alive until then. Those whose lease is over are counted out. */
  join(processId: string, claim: BudgetClaim, leaseUs: number, nowUs: number): void {
    const known = this.#members.get(processId);
    if (known === undefined) this.#members.set(processId, { claim, pending: 0, leaseUs, usage: 0 });
    else Object.assign(known, { claim, leaseUs });
    for (const [name, member] of this.#members) {
      if (member.leaseUs > nowUs) continue;
      // Nobody sends after its lease what it got before; and stamps never go back.
      const atUs = Math.max(this.#log.lastUs, member.leaseUs);
      if (member.pending > 0) this.#log.writeReserved(this.#windows, member.pending, atUs);
      this.#members.delete(name);
    }
    this.#applyStrictestClaims();
  }

  /** A process that is known here is alive until then. */
  renew(processId: string, leaseUs: number): void {
    const member = this.#members.get(processId);
    if (member !== undefined) member.leaseUs = leaseUs;
  }

  /** True when somebody else's limits are stricter than these. */
  isStricterThan({ windows, spacingUs }: BudgetClaim): boolean {
    if (this.#spacingUs() > spacingUs) return true;
    return this.#windows.some(({ limit, spanUs }, index) => {
      const own = windows.find(({ windowUs }) => windowUs === this.#lengthsUs[index]);
      return own === undefined || limit < own.limit || spanUs > own.spanUs;
    });
  }

  /** How many units a process may have now: its share while others are hungry too, and nothing while it is their turn. */
  availableUnits(processId: string, { least, most }: UnitDemand, nowUs: number): number {
    const spacingUs = this.#spacingUs();
    const freeUs = this.#log.earliestUs(this.#windows, spacingUs, least, nowUs);
    if (freeUs > nowUs) return 0;
    const free = Math.min(...this.#windows.map((w, index) => w.limit - this.#log.usedUnits(index, w, nowUs)));
    // Evenly spaced sends go one by one.
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
   * Notes whether a process wants more than it got, so that the others leave it its share; and when it will be back for
   * it, since until then it cannot have gone elsewhere.
   */
  setWaiting(processId: string, isWaiting: boolean, nowUs: number, nextRequestUs: number = nowUs): void {
    const member = this.#members.get(processId);
    if (member === undefined) return;
    const others = this.#waitingOthers(processId, nowUs);
    // Who comes to the table now has no claim on what the others ate before, nor they on what it had alone. One that was
    // content for a moment only has not left.
    if (isWaiting && !wasWaiting(member, nowUs) && others.length > 0)
      member.usage = Math.min(...others.map(({ usage }) => usage));
    member.isWaiting = isWaiting;
    if (isWaiting) member.nextRequestUs = nextRequestUs;
  }

  /** When at least so many units could be had; somewhat later for one whose turn it is not. */
  earliestUs(processId: string, least: number, nowUs: number): number {
    const freeUs = this.#log.earliestUs(this.#windows, this.#spacingUs(), least, nowUs);
    return freeUs > nowUs || this.#waitingOthers(processId, nowUs).length === 0
      ? freeUs
      : Math.max(nowUs, freeUs + TURN_US);
  }

  /** Units that a process had out were written just now, or come back. Those it no longer has, were counted already. */
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

  /** True when nothing in here can delay anybody any more. */
  isExpired(nowUs: number): boolean {
    let lastUs = this.#log.written > 0 ? this.#log.lastUs : Number.NEGATIVE_INFINITY;
    for (const { pending, leaseUs } of this.#members.values()) {
      if (leaseUs > nowUs) return false;
      if (pending > 0) lastUs = Math.max(lastUs, leaseUs);
    }
    const quietUs = nowUs - lastUs;
    return quietUs >= this.#spacingUs() && this.#windows.every(({ spanUs }) => quietUs >= spanUs);
  }

  #waitingOthers(processId: string, nowUs: number): readonly Member[] {
    const others: Member[] = [];
    for (const [name, member] of this.#members)
      if (name !== processId && member.isWaiting === true && wasWaiting(member, nowUs)) others.push(member);
    return others;
  }

  #spacingUs(): number {
    let widestUs = 0;
    for (const { claim } of this.#members.values()) widestUs = Math.max(widestUs, claim.spacingUs);
    return widestUs;
  }

  /** Takes the strictest of what the living want kept. */
  #applyStrictestClaims(): void {
    const strictest = new Map<number, { limit: number; spanUs: number }>();
    for (const { claim } of this.#members.values()) {
      for (const { limit, windowUs, spanUs } of claim.windows) {
        const known = strictest.get(windowUs);
        if (known === undefined) strictest.set(windowUs, { limit, spanUs });
        else strictest.set(windowUs, { limit: Math.min(known.limit, limit), spanUs: Math.max(known.spanUs, spanUs) });
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

function wasWaiting({ nextRequestUs }: Member, nowUs: number): boolean {
  return nextRequestUs !== undefined && nowUs - nextRequestUs < WAITING_TIMEOUT_US;
}

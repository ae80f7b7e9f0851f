/**
 * One budget that several processes draw on: a window log, and what each process has out of it.
 *
 * A process asks for units before it sends, and says afterwards that they were written or come back. Until then they
 * count as written now, for everybody (law L1). Each contact renews its lease; when a process dies, its lease ends, and
 * what it had out counts as written at that moment: the latest at which it can have been.
 *
 * Processes may have different limits in mind. For each length of window the strictest of those alive is kept.
 */
import { type LogState, makeWindow, type Window, WindowLog } from "./window-log.ts";

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
export interface Wanted {
  readonly least: number;
  readonly most: number;
}

/** What a process has to do with a budget. */
interface Member {
  claim: BudgetClaim;
  pending: number;
  leaseUs: number;
  /** Whether it wants more than it got. */
  isHungry?: boolean | undefined;
  /** When one that wanted more last was to be back; undefined when it always got what it wanted. */
  backUs?: number | undefined;
  /** Units it got, to see whose turn it is. */
  served: number;
}

export interface BudgetState {
  readonly log: LogState;
  readonly windows: readonly Window[];
  readonly lengthsUs: readonly number[];
  readonly members: Readonly<Record<string, Member>>;
}

/** Who was told to wait and has not been back for so long has gone elsewhere. */
const HUNGER_US = 2_000_000;
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
  join(party: string, claim: BudgetClaim, leaseUs: number, nowUs: number): void {
    const known = this.#members.get(party);
    if (known === undefined) this.#members.set(party, { claim, pending: 0, leaseUs, served: 0 });
    else Object.assign(known, { claim, leaseUs });
    for (const [name, member] of this.#members) {
      if (member.leaseUs > nowUs) continue;
      // Nobody sends after its lease what it got before; and stamps never go back.
      const atUs = Math.max(this.#log.lastUs, member.leaseUs);
      if (member.pending > 0) this.#log.writeReserved(this.#windows, member.pending, atUs);
      this.#members.delete(name);
    }
    this.#follow();
  }

  /** A process that is known here is alive until then. */
  renew(party: string, leaseUs: number): void {
    const member = this.#members.get(party);
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
  room(party: string, { least, most }: Wanted, nowUs: number): number {
    const spacingUs = this.#spacingUs();
    const freeUs = this.#log.earliestUs(this.#windows, spacingUs, least, nowUs);
    if (freeUs > nowUs) return 0;
    const free = Math.min(...this.#windows.map((w, index) => w.limit - this.#log.usedUnits(index, w, nowUs)));
    // Evenly spaced sends go one by one.
    const atOnce = Math.min(spacingUs > 0 ? least : free, most);
    const others = this.#hungry(party, nowUs);
    if (others.length === 0) return atOnce;
    const served = this.#members.get(party)?.served ?? 0;
    const before = others.filter(other => other.served < served).length;
    if (free <= before && nowUs - freeUs < TURN_US) return 0;
    return Math.min(atOnce, Math.max(least, Math.ceil(free / (others.length + 1))));
  }

  reserve(party: string, units: number): void {
    const member = this.#members.get(party);
    if (member === undefined) return;
    member.pending += units;
    member.served += units;
    this.#log.reserve(units);
  }

  /**
   * Notes whether a process wants more than it got, so that the others leave it its share; and when it will be back for
   * it, since until then it cannot have gone elsewhere.
   */
  noteHunger(party: string, isHungry: boolean, nowUs: number, backUs: number = nowUs): void {
    const member = this.#members.get(party);
    if (member === undefined) return;
    const others = this.#hungry(party, nowUs);
    // Who comes to the table now has no claim on what the others ate before, nor they on what it had alone. One that was
    // content for a moment only has not left.
    if (isHungry && !wasHungry(member, nowUs) && others.length > 0)
      member.served = Math.min(...others.map(({ served }) => served));
    member.isHungry = isHungry;
    if (isHungry) member.backUs = backUs;
  }

  /** When at least so many units could be had; somewhat later for one whose turn it is not. */
  earliestUs(party: string, least: number, nowUs: number): number {
    const freeUs = this.#log.earliestUs(this.#windows, this.#spacingUs(), least, nowUs);
    return freeUs > nowUs || this.#hungry(party, nowUs).length === 0 ? freeUs : Math.max(nowUs, freeUs + TURN_US);
  }

  /** Units that a process had out were written just now, or come back. Those it no longer has, were counted already. */
  settle(party: string, written: number, returned: number, nowUs: number): void {
    const member = this.#members.get(party);
    if (member === undefined) return;
    const gone = Math.min(written, member.pending);
    if (gone > 0) this.#log.writeReserved(this.#windows, gone, nowUs);
    const back = Math.min(returned, member.pending - gone);
    this.#log.giveBack(back);
    member.pending -= gone + back;
    member.served -= back;
  }

  /** True when nothing in here can delay anybody any more. */
  isSpent(nowUs: number): boolean {
    let lastUs = this.#log.written > 0 ? this.#log.lastUs : Number.NEGATIVE_INFINITY;
    for (const { pending, leaseUs } of this.#members.values()) {
      if (leaseUs > nowUs) return false;
      if (pending > 0) lastUs = Math.max(lastUs, leaseUs);
    }
    const quietUs = nowUs - lastUs;
    return quietUs >= this.#spacingUs() && this.#windows.every(({ spanUs }) => quietUs >= spanUs);
  }

  #hungry(party: string, nowUs: number): readonly Member[] {
    const others: Member[] = [];
    for (const [name, member] of this.#members)
      if (name !== party && member.isHungry === true && wasHungry(member, nowUs)) others.push(member);
    return others;
  }

  #spacingUs(): number {
    let widestUs = 0;
    for (const { claim } of this.#members.values()) widestUs = Math.max(widestUs, claim.spacingUs);
    return widestUs;
  }

  /** Takes the strictest of what the living want kept. */
  #follow(): void {
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
    this.#log.rewindow(this.#windows, windows);
    this.#windows = windows;
    this.#lengthsUs = [...strictest.keys()];
  }
}

function wasHungry({ backUs }: Member, nowUs: number): boolean {
  return backUs !== undefined && nowUs - backUs < HUNGER_US;
}

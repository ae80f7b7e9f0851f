/**
 * Concurrency slots that processes share. Pure functions on plain data.
 *
 * A process is not notified when a slot becomes free: a process that got fewer slots than it wanted must request again.
 * A free slot is reserved for the waiting process with the fewest slots; among equals, for the one that has waited
 * longest. The reservation ends if that process does not request again within `WAITING_TTL_US`, or a little later: a
 * request that only repeats an earlier one leaves the slots as they are, so that waiting processes do not disturb those
 * that lease and return slots.
 * A process that does not renew its lease loses its slots when the lease ends.
 */
export type SharedSlots = Readonly<Record<string, SlotHolder>>;

/** The slots of one process. */
export interface SlotHolder {
  readonly held: number;
  /**
   * Total number of slots in the policy of this process. The smallest limit of all processes with a live lease applies.
   */
  readonly limit: number;
  /** Since when it has been waiting for more slots; undefined when it is not. */
  readonly waitingSinceUs?: number | undefined;
  /** Until when it counts as waiting. */
  readonly waitingUntilUs?: number | undefined;
  readonly leaseUntilUs: number;
}

export interface SlotRequest {
  /** Slots it holds by its own count, because the store may have lost the record. */
  readonly holds: number;
  /** Additional slots it could use now. */
  readonly wanted: number;
  /** Total number of slots in its policy. */
  readonly limit: number;
  /** Processes that have ended: their slots are free. @default none */
  readonly dead?: readonly string[] | undefined;
}

export interface SlotReply {
  readonly slots: SharedSlots;
  readonly given: number;
  /** How many other waiting processes get a free slot before this one. */
  readonly before: number;
}

/** A waiting process that requests again within this time keeps its precedence; after twice this time it has lost it. */
export const WAITING_TTL_US = 1_000_000;

export function leaseSlots(
  slots: SharedSlots,
  processId: string,
  { holds, wanted, limit, dead = [] }: SlotRequest,
  nowUs: number,
  leaseUs: number,
): SlotReply {
  const activeHolders: Record<string, SlotHolder> = {};
  for (const [name, holder] of Object.entries(slots))
    if (holder.leaseUntilUs > nowUs && !dead.includes(name)) activeHolders[name] = holder;
  const previous = activeHolders[processId];
  const hasEnded = Object.keys(activeHolders).length < Object.keys(slots).length;
  const { waitingSinceUs = nowUs, waitingUntilUs = 0 } = previous ?? {};
  delete activeHolders[processId];
  const others = Object.values(activeHolders);
  const sinceUs = waitingUntilUs > nowUs ? waitingSinceUs : nowUs;
  let own = holds;
  const strictest = Math.min(limit, ...others.map(other => other.limit));
  let free = strictest - own - others.reduce((sum, other) => sum + other.held, 0);
  let given = 0;
  while (given < wanted && free > 0 && others.every(other => !goesBefore(other, own, sinceUs, nowUs))) {
    own += 1;
    given += 1;
    free -= 1;
  }
  const isWaiting = given < wanted;
  const before = Object.entries(activeHolders).filter(
    // Of processes that have waited equally long, the first that asks gets the slot. Here their names order them.
    ([name, other]) => goesBefore(other, own, name < processId ? sinceUs + 1 : sinceUs, nowUs),
  ).length;
  const isSame = previous !== undefined && previous.held === own && previous.limit === limit && !hasEnded;
  const isKept = waitingUntilUs > nowUs + WAITING_TTL_US && (previous?.leaseUntilUs ?? 0) > nowUs + leaseUs / 2;
  if (isWaiting && isSame && isKept) return { slots, given, before };
  if (own === 0 && !isWaiting) return { slots: activeHolders, given, before };
  activeHolders[processId] = {
    held: own,
    limit,
    leaseUntilUs: nowUs + leaseUs,
    ...(isWaiting && { waitingSinceUs: sinceUs, waitingUntilUs: nowUs + 2 * WAITING_TTL_US }),
  };
  return { slots: activeHolders, given, before };
}

/** When the last lease ends and the record may be deleted. */
export function slotsExpiryUs(slots: SharedSlots, nowUs: number): number {
  return Math.max(nowUs, ...Object.values(slots).map(({ leaseUntilUs }) => leaseUntilUs));
}

function goesBefore(other: SlotHolder, held: number, sinceUs: number, nowUs: number): boolean {
  const { waitingSinceUs, waitingUntilUs = 0 } = other;
  if (waitingSinceUs === undefined || waitingUntilUs <= nowUs) return false;
  return other.held < held || (other.held === held && waitingSinceUs < sinceUs);
}

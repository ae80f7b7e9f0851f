/**
 * Slots that processes share: so many requests at once, whoever sends them. Pure, and plain data.
 *
 * Nobody hears when a slot comes free, so whoever was refused comes back, and what is free is kept for him a moment:
 * it goes to whoever has least, and among those to whoever has waited longest. A party that is not heard of loses what
 * it has when its lease is over.
 */
export type SharedSlots = Readonly<Record<string, SlotHolder>>;

export interface SlotHolder {
  readonly held: number;
  /** How many there are altogether, as this party was told. The smallest number counts. */
  readonly limit: number;
  /** Since when it wants more than it has; undefined when it has what it wants. */
  readonly waitingSinceUs?: number | undefined;
  /** For how long it is taken at its word that it wants more. */
  readonly waitingUntilUs?: number | undefined;
  readonly leaseUntilUs: number;
}

export interface SlotRequest {
  /** How many it has, as it knows best: the store may have lost it. */
  readonly holds: number;
  /** How many more it could use at once. */
  readonly wanted: number;
  /** How many there are altogether. */
  readonly limit: number;
}

export interface SlotReply {
  readonly slots: SharedSlots;
  readonly given: number;
}

/** A hungry party that does not come back within this is served no more before others. */
const WAITING_TTL_US = 1_000_000;

export function leaseSlots(
  slots: SharedSlots,
  processId: string,
  { holds, wanted, limit }: SlotRequest,
  nowUs: number,
  leaseUs: number,
): SlotReply {
  const activeHolders: Record<string, SlotHolder> = {};
  for (const [name, holder] of Object.entries(slots)) if (holder.leaseUntilUs > nowUs) activeHolders[name] = holder;
  const { waitingSinceUs } = activeHolders[processId] ?? {};
  delete activeHolders[processId];
  const others = Object.values(activeHolders);
  const sinceUs = waitingSinceUs ?? nowUs;
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
  if (own === 0 && !isWaiting) return { slots: activeHolders, given };
  activeHolders[processId] = {
    held: own,
    limit,
    leaseUntilUs: nowUs + leaseUs,
    ...(isWaiting && { waitingSinceUs: sinceUs, waitingUntilUs: nowUs + WAITING_TTL_US }),
  };
  return { slots: activeHolders, given };
}

/** When the last lease ends: nobody misses it after that. */
export function slotsExpiryUs(slots: SharedSlots, nowUs: number): number {
  return Math.max(nowUs, ...Object.values(slots).map(({ leaseUntilUs }) => leaseUntilUs));
}

function goesBefore(other: SlotHolder, held: number, sinceUs: number, nowUs: number): boolean {
  const { waitingSinceUs, waitingUntilUs = 0 } = other;
  if (waitingSinceUs === undefined || waitingUntilUs <= nowUs) return false;
  return other.held < held || (other.held === held && waitingSinceUs < sinceUs);
}

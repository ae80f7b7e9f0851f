import type { KeySnapshot } from "../../limiter/key-snapshot.ts";
import type { ProcessFacts } from "./why-facts.ts";

/** The key of the request in one process. */
export interface PublishedFacts {
  readonly facts: ProcessFacts;
  readonly key: KeySnapshot;
  /** Whether the process shares its limits. */
  readonly isSharing: boolean;
}

/**
 * Processes that share limits know what the others have used only from the replies of the store. One that has not asked
 * for a moment has published that a window is free, although the others have used it. So a window that one of them has
 * found full is full for all, and so is one that they have used up together.
 */
export function withSharedUse(published: readonly PublishedFacts[]): readonly ProcessFacts[] {
  const sharing = published.filter(({ isSharing }) => isSharing);
  if (sharing.length < 2) return published.map(({ facts }) => facts);
  const fullest = sharing
    .map(({ facts, key }) => ({ facts, freeMs: sharedFreeMs(facts, key) }))
    .reduce((latest, one) => (one.freeMs > latest.freeMs ? one : latest));
  const usedUp = fullest.freeMs > 0 ? undefined : usedUpWindow(sharing);
  return published.map(({ facts, key, isSharing }) => {
    if (!isSharing) return facts;
    if (usedUp !== undefined && facts.readyMs === 0 && facts.constraint === undefined)
      return { ...facts, constraint: { kind: "window", owner: key.key, limit: usedUp }, isUsedUp: true };
    if (facts.readyMs >= fullest.freeMs) return facts;
    const { constraint, decidedBy } = fullest.facts;
    return { ...facts, readyMs: fullest.freeMs, constraint, decidedBy };
  });
}

/** Milliseconds until a window that the process has found full has capacity again, without its queue. */
function sharedFreeMs({ constraint, ageMs }: ProcessFacts, { nextFreeMs }: KeySnapshot): number {
  return constraint?.kind === "window" || constraint?.kind === "spacing" ? Math.max(0, nextFreeMs - ageMs) : 0;
}

/** The rate of a window of which the processes together have used all units. */
function usedUpWindow(sharing: readonly PublishedFacts[]): string | undefined {
  const windows = sharing.flatMap(({ key }) => key.windows.filter(({ unit = "requests" }) => unit === "requests"));
  const byRate = Map.groupBy(windows, ({ rate }) => rate);
  return [...byRate].find(
    ([, ofRate]) => ofRate.reduce((sum, { used }) => sum + used, 0) >= (ofRate[0]?.limit ?? 0),
  )?.[0];
}

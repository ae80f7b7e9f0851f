import { type ResolverYields, TYPICAL_YIELDS } from "./call-plan.ts";

/** The typical shares count as much as this number of works in the manifest. */
const PRIOR_WORKS = 50;

/** The typical yields, corrected by what earlier runs of a manifest have counted. */
export function learnedYields(
  counts: readonly { readonly resolver: string; readonly asked: number; readonly stored: number }[],
): ResolverYields {
  const learned = counts.flatMap(({ resolver, asked, stored }) => {
    const typical = TYPICAL_YIELDS[resolver];
    return typical === undefined ? [] : [[resolver, (stored + typical * PRIOR_WORKS) / (asked + PRIOR_WORKS)] as const];
  });
  return { ...TYPICAL_YIELDS, ...Object.fromEntries(learned) };
}

/** Mutants that no test can kill, since nobody could tell the difference; each has its reason in `justified.json`. */
import type { Mutant } from "./mutants.ts";

/** By id. The place and the change are for whoever reads the file. */
export type Justified = Readonly<Record<string, { readonly change: string; readonly reason: string }>>;

/** What is wrong with the list: ids that are no mutant's any more, and entries without a reason. */
export function problemsOf(justified: Justified, mutants: readonly Mutant[]): readonly string[] {
  const ids = new Set(mutants.map(({ id }) => id));
  return Object.entries(justified).flatMap(([id, { change, reason }]) => [
    ...(ids.has(id) ? [] : [`${id} is no mutant any more: ${change}`]),
    ...(reason.trim() === "" ? [`${id} has no reason: ${change}`] : []),
  ]);
}

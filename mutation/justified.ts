/** Mutants that no test can kill, because they do not change behaviour. `justified.json` gives the reason of each. */
import type { Mutant } from "./mutants.ts";

/** Keyed by the id of the mutant. `change` is for readers of the file. */
export type Justified = Readonly<Record<string, { readonly change: string; readonly reason: string }>>;

/** Problems of the list: ids that no mutant has, and entries without a reason. */
export function problemsOf(justified: Justified, mutants: readonly Mutant[]): readonly string[] {
  const ids = new Set(mutants.map(({ id }) => id));
  return Object.entries(justified).flatMap(([id, { change, reason }]) => [
    ...(ids.has(id) ? [] : [`no mutant has the id ${id}: ${change}`]),
    ...(reason.trim() === "" ? [`${id} has no reason: ${change}`] : []),
  ]);
}

/**
 * Selects the mutant that is in force. Instrumented code contains every mutant of its file and reads `active` wherever
 * one of them begins, so that the next mutant needs no new import.
 */

/** The number of the mutant in force, or `NONE`. */
export let active = -1;
/** While a test is measured, instrumented code marks the mutants that change something. */
export let measuring = false;

const NONE = -1;
let marks = new Uint8Array(1 << 16);
let count = 0;
let limit = Number.POSITIVE_INFINITY;

export function activate(mutant: number): void {
  active = mutant;
}

export function deactivate(): void {
  active = NONE;
}

/** Reserves numbers for the mutants of a file, and returns the first of them. */
export const reserve = (() => {
  let next = 0;
  return (size: number): number => {
    const first = next;
    next += size;
    if (next > marks.length) marks = new Uint8Array(2 * next);
    return first;
  };
})();

/** Marks the mutants that `run` reaches, unless their value is that of the original code each time. */
export async function measured(run: () => Promise<void>): Promise<readonly number[]> {
  marks.fill(0);
  measuring = true;
  try {
    await run();
  } finally {
    measuring = false;
  }
  return [...marks.keys()].filter(mutant => marks[mutant] === 1);
}

/** Called by instrumented code, while it is measured. */
export function reach(mutant: number): void {
  marks[mutant] = 1;
}

/** Called by instrumented code, while it is measured, with the values of the original and of the changed code. */
export function compare(mutant: number, original: unknown, changed: unknown): void {
  if (!Object.is(original, changed)) marks[mutant] = 1;
}

/** Called by instrumented code in each function and each round of a loop: an endless loop ends by an exception. */
export function step(): true {
  count += 1;
  if (count > limit) throw new Error("too many steps");
  return true;
}

/** Counts steps from 0. More than `most` steps end the code that makes them. */
export function limitSteps(most: number): void {
  count = 0;
  limit = most;
}

export function stepsMade(): number {
  return count;
}

export function hasTooManySteps(): boolean {
  return count > limit;
}

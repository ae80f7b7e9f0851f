/**
 * The children of a scheduler node that may have a ready request, in the order of their turns. A child that had the turn
 * while the store was asked comes back before the others.
 */
export class ChildTurns<Child> {
  #first = new Set<Child>();
  readonly #rest = new Set<Child>();

  get size(): number {
    return this.#first.size + this.#rest.size;
  }

  has(child: Child): boolean {
    return this.#first.has(child) || this.#rest.has(child);
  }

  /** Adds a child after all others, or before those that have not had the turn. A child that is among them stays where it is. */
  add(child: Child, keepsTurn = false): void {
    if (this.has(child)) return;
    (keepsTurn ? this.#first : this.#rest).add(child);
  }

  moveToFront(child: Child): void {
    this.delete(child);
    this.#first = new Set([child, ...this.#first]);
  }

  moveToEnd(child: Child): void {
    this.delete(child);
    this.#rest.add(child);
  }

  delete(child: Child): void {
    if (!this.#first.delete(child)) this.#rest.delete(child);
  }

  clear(): void {
    this.#first.clear();
    this.#rest.clear();
  }

  *[Symbol.iterator](): Generator<Child> {
    yield* this.#first;
    yield* this.#rest;
  }
}

/**
 * Skips at once all rounds in which each child would only skip its turn. The order of the children stays as it is. Without
 * this, two heavy requests would take one step for each unit of their weight.
 */
export function skipRounds(children: Iterable<{ skippedTurns: number }>): void {
  let rounds = Number.POSITIVE_INFINITY;
  for (const { skippedTurns } of children) rounds = Math.min(rounds, skippedTurns);
  for (const child of children) child.skippedTurns -= rounds;
}

import type { Assignment } from "./layer.ts";

/** A character that no key contains, so that different paths have different texts. */
const SEPARATOR = "\u0000";

/** Finds the assignments of a path without reading all of them. */
export class SourceIndex {
  readonly #exact = new Map<string, Assignment[]>();
  /** The first assignment at or below each path. */
  readonly #below = new Map<string, Assignment>();

  constructor(assignments: Iterable<Assignment>) {
    for (const assignment of assignments) {
      let text = "";
      for (const [depth, key] of assignment.path.entries()) {
        text = depth === 0 ? key : `${text}${SEPARATOR}${key}`;
        if (!this.#below.has(text)) this.#below.set(text, assignment);
      }
      const known = this.#exact.get(text);
      if (known === undefined) this.#exact.set(text, [assignment]);
      else known.push(assignment);
    }
  }

  /** Every assignment of exactly this path, weakest layer first. */
  at(path: readonly string[]): readonly Assignment[] {
    return this.#exact.get(path.join(SEPARATOR)) ?? [];
  }

  /** False if a stronger layer sets the same path. */
  isInEffect(assignment: Assignment): boolean {
    return this.at(assignment.path).at(-1) === assignment;
  }

  /** The source of a path; otherwise of the first path below it, or of the nearest path above it. */
  whereOf(path: readonly string[]): string | undefined {
    const found = this.at(path).at(-1) ?? this.#below.get(path.join(SEPARATOR));
    if (found !== undefined || path.length === 0) return found?.where;
    for (let length = path.length - 1; length > 0; length -= 1) {
      const above = this.at(path.slice(0, length)).at(-1);
      if (above !== undefined) return above.where;
    }
    return undefined;
  }
}

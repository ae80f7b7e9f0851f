import type { KeySummary } from "./run-summary.ts";

/** Counts the grants and refusals of one role of a host or service. */
export class KeyRow {
  readonly key: string;
  readonly role: string;
  acquired = 0;
  blocked = 0;
  aborted = 0;
  headSkipped = 0;
  multiplier = 1;
  leastMultiplier = 1;

  constructor(key: string, role: string) {
    this.key = key;
    this.role = role;
  }

  setMultiplier(multiplier: number): void {
    this.multiplier = multiplier;
    this.leastMultiplier = Math.min(this.leastMultiplier, multiplier);
  }

  summary(): KeySummary {
    const { key, role, acquired, blocked, aborted, headSkipped, multiplier, leastMultiplier } = this;
    return { key, role, acquired, blocked, aborted, headSkipped, multiplier, leastMultiplier };
  }
}

/** What the tables say about each limiter in the race for nanoseconds. */
import type { TimedCase } from "../kit/timing.ts";

interface LimiterLabel {
  readonly name: string;
  /** How many windows each call is checked against. */
  readonly windows: number;
  /** Whether it finds the budget of a host itself, leaves that to a Map of its user, or has only one budget. */
  readonly keys: "own" | "Map" | "none";
}

export type LimiterCase = LimiterLabel & TimedCase;

export function keyed(name: string, windows: number): LimiterLabel {
  return { name, windows, keys: "own" };
}

export function mapped(name: string): LimiterLabel {
  return { name, windows: 1, keys: "Map" };
}

export function unkeyed(name: string): LimiterLabel {
  return { name, windows: 1, keys: "none" };
}

/** The cells of each limiter in the tables of nanoseconds. */
import type { TimedCase } from "../kit/timing.ts";

interface LimiterLabel {
  readonly name: string;
  /** Number of windows that each call is checked against. */
  readonly windows: number;
  /** Whether the library has keys, needs a Map of the user, or has only one budget. */
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

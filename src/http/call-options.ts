import type { CallOptions } from "./stages/stage.ts";

/** A call, and since when its deadline runs where that is not now: fetch follows redirects with one deadline for all. */
export interface TimedCallOptions extends CallOptions {
  readonly sinceUs?: number | undefined;
}

/** Typed so that a new option cannot be forgotten here. */
export const CALL_KEYS = Object.keys({
  role: 0,
  resolver: 0,
  service: 0,
  weight: 0,
  maxWaitMs: 0,
  maxBreakerWaitMs: 0,
  deadlineMs: 0,
  offline: 0,
  maxRedirections: 0,
  idempotent: 0,
} satisfies Record<keyof CallOptions, 0>) as readonly (keyof CallOptions)[];

/** What among other options is ours; undefined when nothing is, which is the rule. */
export function pickCallOptions(options: object): CallOptions | undefined {
  let own: Record<string, unknown> | undefined;
  for (const key of CALL_KEYS) {
    const value: unknown = Reflect.get(options, key);
    if (value === undefined) continue;
    own ??= {};
    own[key] = value;
  }
  return own;
}

const NO_OPTIONS: TimedCallOptions = Object.freeze({});

/** Layers of options, the last word first. Most calls say nothing, or in one layer only: then nothing is copied. */
export function mergeCallOptions(...layers: readonly (TimedCallOptions | undefined)[]): TimedCallOptions {
  let merged: TimedCallOptions | undefined;
  for (const layer of layers) {
    if (layer !== undefined) merged = merged === undefined ? layer : { ...layer, ...merged };
  }
  return merged ?? NO_OPTIONS;
}

/** Throws a RangeError that names the option. What the gate looks at is checked there. */
export function checkCall({ deadlineMs, maxWaitMs, maxRedirections }: CallOptions): void {
  if (deadlineMs !== undefined && !(typeof deadlineMs === "number" && deadlineMs > 0))
    throw new RangeError(`deadlineMs must be a number above 0, not ${String(deadlineMs)}`);
  if (maxWaitMs !== undefined && typeof maxWaitMs !== "number")
    throw new RangeError(`maxWaitMs must be a number, not ${String(maxWaitMs)}`);
  if (maxRedirections !== undefined && !(Number.isInteger(maxRedirections) && maxRedirections >= 0))
    throw new RangeError(`maxRedirections must be a whole number from 0, not ${maxRedirections}`);
}

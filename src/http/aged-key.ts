import { MAX_COST_LIMIT, parseRates } from "../core/limits/rate.ts";
import type { KeySnapshot, WindowSnapshot } from "../limiter/key-snapshot.ts";

/** The status of a process from which a key comes. */
export interface StatusAge {
  /** Time since it was published. */
  readonly ageMs: number;
  /** The calls that were open then. */
  readonly calls: number;
}

/**
 * What a published key says now. Its orders and its hold end with time. A process without open calls publishes nothing
 * until its next call, so what its windows have freed since then, and the end of a wait, follow from the age. The times
 * that remain (`estimatedWaitMs`, `remainingMs`) stay as they were published.
 */
export function agedKey(key: KeySnapshot, { ageMs, calls }: StatusAge): KeySnapshot {
  const { hold, order, totalOrder } = key;
  const running = {
    hold: hold !== undefined && hold.remainingMs > ageMs ? hold : undefined,
    order: order !== undefined && order.remainingMs > ageMs ? order : undefined,
    totalOrder: totalOrder !== undefined && totalOrder.remainingMs > ageMs ? totalOrder : undefined,
  };
  if (calls > 0) return { ...key, ...running };
  const { windows, guardMs, multiplier, unitsPerSecond, constraint, estimatedWaitMs } = key;
  const isFreed = (window: WindowSnapshot) => ageMs >= lengthMsOf(window) / multiplier + guardMs;
  const shortestMs = Math.min(...windows.map(lengthMsOf));
  return {
    ...key,
    ...running,
    windows: windows.map(window => (isFreed(window) ? { ...window, used: 0 } : window)),
    unitsPerSecond: unitsPerSecond !== undefined && ageMs >= shortestMs ? 0 : unitsPerSecond,
    constraint: estimatedWaitMs > 0 && estimatedWaitMs <= ageMs ? undefined : constraint,
  };
}

/** Rates whose length was parsed. A policy has few of them; the bound is for texts of other versions. */
const LENGTHS_MAX = 1000;
const lengthsMs = new Map<string, number>();

/** The length of a window, from its rate. Parsed once, because the statuses of many processes are read each second. */
function lengthMsOf({ rate }: WindowSnapshot): number {
  const known = lengthsMs.get(rate);
  if (known !== undefined) return known;
  if (lengthsMs.size >= LENGTHS_MAX) lengthsMs.clear();
  const ms = parsedLengthMs(rate);
  lengthsMs.set(rate, ms);
  return ms;
}

/** Of `10/SECOND` or `credits 100/3MINUTE`. Infinity for a text of another version. */
function parsedLengthMs(rate: string): number {
  const [text] = /\d+\/\d*[A-Z]+/.exec(rate) ?? [];
  if (text === undefined) return Number.POSITIVE_INFINITY;
  try {
    const [window] = parseRates(text, MAX_COST_LIMIT);
    return window === undefined ? Number.POSITIVE_INFINITY : window.windowUs / 1000;
  } catch (error) {
    if (error instanceof RangeError) return Number.POSITIVE_INFINITY;
    throw error;
  }
}

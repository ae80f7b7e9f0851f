/** The longest order of an operator: one year. Every order has an end, so that a forgotten one does not stay for ever. */
export const ORDER_SECONDS_MAX = 366 * 86_400;

/** The duration of an order in milliseconds. Throws a RangeError for one that is not valid. */
export function orderMs(seconds: number): number {
  if (seconds > 0 && seconds <= ORDER_SECONDS_MAX) return seconds * 1000;
  throw new RangeError(`seconds must be greater than 0 and at most ${ORDER_SECONDS_MAX} (a year), got ${seconds}`);
}

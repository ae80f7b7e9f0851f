import { randomInt } from "node:crypto";

/** `npm test` sets it for its test files; a user may set it to a number or to `random`. */
export const PROPERTY_SEED_VARIABLE = "PROPERTY_SEED";

/** The seed of one run. Without a wish it is always the same: the test command gives the same result every time. */
export function propertySeed(wish: string | undefined): number {
  if (wish === undefined || wish === "") return 1;
  if (wish === "random") return randomInt(1, 2 ** 31);
  const seed = Number(wish);
  if (!Number.isSafeInteger(seed) || Math.abs(seed) >= 2 ** 31)
    throw new RangeError(
      `${PROPERTY_SEED_VARIABLE} must be an integer of 32 bits or "random", got ${JSON.stringify(wish)}`,
    );
  return seed;
}

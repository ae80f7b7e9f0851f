import { type BreakerCooldownRecord, type BreakerRecord, type HoldRecords, nextSerial } from "./breaker-record.ts";

/**
 * Orders of an operator to hold the calls of some roles of a host, or to release them. Unlike an open circuit a hold says
 * nothing about the host: calls wait for its end as for a rate limit.
 */
export type HoldOrder =
  | {
      readonly kind: "hold";
      readonly roles: readonly string[];
      readonly durationUs: number;
      readonly reason: string;
    }
  | { readonly kind: "release"; readonly roles: readonly string[] };

/** The hold of a role that was never held. */
const NO_HOLD: BreakerCooldownRecord = Object.freeze({ serial: 0, untilUs: 0, reason: "" });

/**
 * The holds of a record after the order; the same object if every role has a newer one. Of two holds the later end
 * counts. Each role has its own version.
 * @param givenUs when it was given: earlier than `nowUs` if the store was away then
 */
export function orderedHolds(
  { holds = {} }: BreakerRecord,
  order: HoldOrder,
  nowUs: number,
  givenUs: number,
): HoldRecords {
  const given = order.roles
    .map(role => [role, holds[role] ?? NO_HOLD] as const)
    .filter(([, { serial }]) => givenUs === nowUs || serial <= givenUs)
    .map(([role, known]) => [role, orderedHold(known, order, nowUs, givenUs)] as const);
  return given.length === 0 ? holds : { ...holds, ...Object.fromEntries(given) };
}

/** The newest hold of each role in either of two records; the first object itself if it lacks none. */
export function newerHolds(holds: HoldRecords, other: HoldRecords): HoldRecords {
  const newer = Object.entries(other).filter(([role, { serial }]) => serial > (holds[role] ?? NO_HOLD).serial);
  return newer.length === 0 ? holds : { ...holds, ...Object.fromEntries(newer) };
}

function orderedHold(
  known: BreakerCooldownRecord,
  order: HoldOrder,
  nowUs: number,
  givenUs: number,
): BreakerCooldownRecord {
  const serial = nextSerial(known.serial, givenUs);
  if (order.kind === "release") return { serial, untilUs: 0, reason: "" };
  const untilUs = nowUs + order.durationUs;
  return known.untilUs >= untilUs ? { ...known, serial } : { serial, untilUs, reason: order.reason };
}

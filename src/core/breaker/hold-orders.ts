import { type BreakerCooldownRecord, type BreakerRecord, type HoldRecords, nextSerial } from "./breaker-record.ts";
import { orderedByRole } from "./role-records.ts";

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
 * counts.
 * @param givenUs when it was given: earlier than `nowUs` if the store was away then
 */
export function orderedHolds(
  { holds = {} }: BreakerRecord,
  order: HoldOrder,
  nowUs: number,
  givenUs: number,
): HoldRecords {
  const ordered = (known = NO_HOLD) => orderedHold(known, order, nowUs, givenUs);
  return orderedByRole(holds, order.roles, ordered, nowUs, givenUs);
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

import { type BreakerRecord, type LimitOrderRecord, type LimitOrderRecords, nextSerial } from "./breaker-record.ts";
import { orderedByRole } from "./role-records.ts";

/** Orders of an operator to change the rates of some roles of a host or service, or to end such a change. */
export type LimitOrder = {
  readonly roles: readonly string[];
  readonly reason: string;
  /** Who gave the order. */
  readonly by: string;
} & (
  | {
      readonly kind: "set-limit";
      readonly durationUs: number;
      /** The rates as text: `2/SECOND+100/HOUR`. */
      readonly rates: string;
      /** They replace the rates of the policy. Otherwise they can only tighten them. */
      readonly isForced: boolean;
    }
  | { readonly kind: "reset-limit" }
);

/**
 * The changed limits of a record after the order; the same object if every role has a newer one. The newest order
 * replaces the one before, also if that lasts longer.
 * @param givenUs when it was given: earlier than `nowUs` if the store was away then
 */
export function orderedLimits(
  { limits = {} }: BreakerRecord,
  order: LimitOrder,
  nowUs: number,
  givenUs: number,
): LimitOrderRecords {
  const ordered = (known: LimitOrderRecord | undefined): LimitOrderRecord => {
    const serial = nextSerial(known?.serial ?? 0, givenUs);
    const { reason, by } = order;
    if (order.kind === "reset-limit") return { serial, untilUs: 0, rates: "", isForced: false, reason, by };
    const { rates, isForced, durationUs } = order;
    return { serial, untilUs: nowUs + durationUs, rates, isForced, reason, by };
  };
  return orderedByRole(limits, order.roles, ordered, nowUs, givenUs);
}

import type { OrderedLimit } from "../limits/ordered-limit.ts";
import { parseRates } from "../limits/rate.ts";
import { type BreakerRecord, type LimitOrderRecord, type LimitOrderRecords, nextSerial } from "./breaker-record.ts";
import { orderedByRole } from "./role-records.ts";

/** Orders of an operator to change the limits of some roles or the total of a host or service, or to end such a change. */
export type LimitOrder = {
  /** Roles, or `total`. */
  readonly roles: readonly string[];
  readonly reason: string;
  /** The operator that gave the order. */
  readonly by: string;
} & (
  | {
      readonly kind: "set-limit";
      readonly durationUs: number;
      /** The rates as text: `2/SECOND+100/HOUR`; empty if there are none. */
      readonly rates: string;
      /** The most requests in flight. Undefined if the order leaves this limit as it is. */
      readonly maxConcurrent?: number | undefined;
      /** They replace the limits of the policy. Otherwise they can only tighten them. */
      readonly isForced: boolean;
    }
  | { readonly kind: "reset-limit" }
);

/**
 * The changed limits of a record after the order; the same object if every role has a newer one. The newest order
 * replaces the one before, even if that one ends later.
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
    const { rates, maxConcurrent, isForced, durationUs } = order;
    const limits = { rates, ...(maxConcurrent !== undefined && { maxConcurrent }) };
    return { serial, untilUs: nowUs + durationUs, ...limits, isForced, reason, by };
  };
  return orderedByRole(limits, order.roles, ordered, nowUs, givenUs);
}

/** The limits of an order or of its record. Throws a RangeError for rates that this version cannot read. */
export function limitsOf({
  rates,
  maxConcurrent,
}: Pick<LimitOrder & { readonly kind: "set-limit" }, "rates" | "maxConcurrent">): Pick<
  OrderedLimit,
  "rates" | "maxConcurrent"
> {
  return { rates: rates === "" ? [] : parseRates(rates), maxConcurrent };
}

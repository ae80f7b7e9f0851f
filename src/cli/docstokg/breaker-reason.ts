import { isOperatorReason } from "../../breaker/cooldowns.ts";
import type { Colour } from "../output/colour.ts";

export const STATE_COLOURS = { open: "red", half_open: "yellow", closed: "green" } as const satisfies Record<
  string,
  Colour
>;

/** A stored reason as it is printed: `opened by operator: maintenance`. JSON output has the stored code. */
export function breakerReasonText(reason: string): string {
  return isOperatorReason(reason) ? `opened by operator: ${reason.slice(reason.indexOf(":") + 1)}` : reason;
}

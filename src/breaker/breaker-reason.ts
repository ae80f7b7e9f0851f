import { isOperatorReason, reasonText } from "./cooldowns.ts";

/** A stored reason as it is printed: `opened by operator: maintenance`. JSON output has the stored code. */
export function breakerReasonText(reason: string): string {
  return isOperatorReason(reason) ? `opened by operator: ${reasonText(reason)}` : reason;
}

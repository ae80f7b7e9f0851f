import { isOperatorReason, reasonText } from "./cooldowns.ts";

/** Prints the stored reason `cli-open:maintenance` as `opened by operator: maintenance`. JSON has the stored reason. */
export function breakerReasonText(reason: string): string {
  return isOperatorReason(reason) ? `opened by operator: ${reasonText(reason)}` : reason;
}

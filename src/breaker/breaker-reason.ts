import { OPERATOR_PREFIX } from "./cooldowns.ts";

/**
 * Prints the stored reason `cli-open:maintenance` as `opened by operator: maintenance`, also inside the name of a limit:
 * `open circuit (cli-open:maintenance)`. JSON has the stored reason.
 */
export function breakerReasonText(reason: string): string {
  return reason.replace(OPERATOR_PREFIX, "opened by operator: ");
}

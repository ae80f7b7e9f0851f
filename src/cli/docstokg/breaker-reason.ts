/** The prefix of the reason that an operator's `breaker open` stores. */
const OPERATOR_PREFIX = "cli-open:";

/** A stored reason as it is printed: `opened by operator: maintenance`. JSON output has the stored code. */
export function breakerReasonText(reason: string): string {
  return reason.startsWith(OPERATOR_PREFIX) ? `opened by operator: ${reason.slice(OPERATOR_PREFIX.length)}` : reason;
}

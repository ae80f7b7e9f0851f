import type { OpenReason } from "../errors.ts";

/** Stored in shared records and printed in events, so it never changes. */
const PREFIX = "cli-open:";

/** The reason of a cooldown that an operator has ordered: `cli-open:maintenance`. */
export function operatorReason(text: string): OpenReason {
  return `${PREFIX}${text}`;
}

/** Ordered by an operator, so no result of a call may end it (law B5). */
export function isOperatorReason(reason: string): boolean {
  return reason.startsWith(PREFIX);
}

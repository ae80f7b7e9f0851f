const CHARS_MAX = 200;
/** Control characters, line ends, and characters that change the direction of text: these could forge a line of a log. */
const FORGING = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

/** What the reason of an operator must be, for messages. */
export const REASON_FORM = `one line of 1 to ${CHARS_MAX} characters, none of which changes the direction of text`;

/** Whether a text can be the reason of an order, which logs, tables and pages show. */
export function isOrderReason(text: string): boolean {
  return text !== "" && text.length <= CHARS_MAX && !FORGING.test(text);
}

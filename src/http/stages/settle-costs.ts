import { redactedText } from "../../core/text/redaction.ts";
import { messageOf } from "../../errors.ts";
import type { Grant } from "../../limiter/grant.ts";
import type { CallOptions } from "../call-options.ts";
import type { ResponseHead } from "./stage.ts";

/**
 * Settles what an attempt really used, when its response has begun: by the headers that the policy names, then by the
 * option of the call. An error of the caller's function becomes a warning: the response itself is not affected.
 */
export function settleCosts(grant: Grant, { status, headers }: ResponseHead, settle: CallOptions["settleCosts"]): void {
  const { costHeaders } = grant;
  for (const unit in costHeaders) {
    const used = wholeNumber(headers[costHeaders[unit]?.toLowerCase() ?? ""]);
    if (used !== undefined && grant.counts(unit)) grant.settle({ [unit]: used });
  }
  if (settle === undefined) return;
  try {
    const used = settle({ status, headers });
    if (used !== undefined) grant.settle(used);
  } catch (error) {
    process.emitWarning(`settleCosts failed: ${redactedText(messageOf(error))}; the call keeps its estimated costs`, {
      type: "DocstokgWarning",
    });
  }
}

/** A fraction is rounded up. Undefined if the header is absent, repeated or not a number. */
function wholeNumber(field: string | readonly string[] | undefined): number | undefined {
  if (typeof field !== "string" || !/^\d{1,15}(?:\.\d{1,20})?$/.test(field.trim())) return undefined;
  return Math.ceil(Number(field));
}

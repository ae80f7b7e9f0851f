import { FAILED, NEUTRAL, type Outcome, SUCCESS, THROTTLED } from "../../core/breaker/classify.ts";
import { redactedText } from "../../core/text/redaction.ts";
import { messageOf } from "../../errors.ts";
import type { CallOptions, JudgedOutcome } from "../call-options.ts";
import type { ResponseHead } from "./stage.ts";

export interface Judgement {
  readonly outcome: Outcome;
  /** The pause that the caller asks for; undefined leaves it to Retry-After. */
  readonly retryAfterMs?: number;
}

/**
 * The caller's own judgement of a response; undefined if it has none. An error of its function becomes a warning, and the
 * policy classifies the response.
 */
export function judgementOf(
  { status, headers }: ResponseHead,
  judge: NonNullable<CallOptions["outcome"]>,
): Judgement | undefined {
  try {
    const judged = judge({ status, headers });
    return judged === undefined ? undefined : toJudgement(judged);
  } catch (error) {
    const message = `the call option outcome failed: ${redactedText(messageOf(error))}; the policy classifies the response`;
    process.emitWarning(message, { type: "DocstokgWarning" });
    return undefined;
  }
}

function toJudgement(judged: JudgedOutcome): Judgement {
  if (judged === "success") return { outcome: SUCCESS };
  if (judged === "neutral") return { outcome: NEUTRAL };
  if (judged === "failure") return { outcome: FAILED };
  if (judged === "throttled") return { outcome: THROTTLED };
  if (judged?.throttled === true && judged.retryAfterMs > 0)
    return { outcome: THROTTLED, retryAfterMs: judged.retryAfterMs };
  throw new RangeError(
    'expected "success", "failure", "throttled", "neutral", { throttled: true, retryAfterMs } or undefined, ' +
      `found ${JSON.stringify(judged)}`,
  );
}

import type { BreakerRegistry } from "../../breaker/breaker-registry.ts";
import type { Outcome } from "../../core/breaker/classify.ts";
import { parseRetryAfterMs } from "../../core/breaker/retry-after.ts";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import { type AnnouncedLimit, announcedLimits } from "../../core/limits/ratelimit-fields.ts";
import type { Time } from "../../time/time.ts";
import { fieldLine } from "../headers.ts";
import type { ResponseHead } from "./stage.ts";

/** What the head of an answer says about its host. */
export interface HostFeedback {
  readonly outcome: Outcome;
  /** How long the host asks to be left alone. */
  readonly retryAfterMs: number | undefined;
  readonly announced: readonly AnnouncedLimit[] | undefined;
}

export function hostFeedback({ status, headers }: ResponseHead, breakers: BreakerRegistry, time: Time): HostFeedback {
  const retryAfter = headers["retry-after"];
  const waitMs =
    retryAfter === undefined
      ? undefined
      : parseRetryAfterMs(retryAfter, { responseDate: fieldLine(headers["date"]), wallMs: time.wallMs() });
  const announced = announcements(headers, time);
  const outcome = breakers.classify({
    status,
    retryAfterMs: waitMs,
    remaining: announced && leastRemaining(announced),
    isMemento: headers["memento-datetime"] !== undefined,
  });
  return { outcome, retryAfterMs: waitMs, announced };
}

/** Parsing costs more than looking whether there is anything to parse, and most answers announce nothing. */
function announcements(headers: HeaderFields, time: Time): readonly AnnouncedLimit[] | undefined {
  for (const name in headers) {
    if (!name.includes("ratelimit") && !name.startsWith("x-rate-limit") && name !== "x-concurrency-limit") continue;
    const found = announcedLimits(field => fieldLine(headers[field]), time.wallMs());
    return found.length === 0 ? undefined : found;
  }
  return undefined;
}

function leastRemaining(announced: readonly AnnouncedLimit[]): number | undefined {
  let least: number | undefined;
  for (const { remaining } of announced) {
    if (remaining !== undefined && (least === undefined || remaining < least)) least = remaining;
  }
  return least;
}

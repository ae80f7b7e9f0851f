import type { BreakerRegistry } from "../../breaker/breaker-registry.ts";
import type { Outcome } from "../../core/breaker/classify.ts";
import { parseRetryAfterMs } from "../../core/breaker/retry-after.ts";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import { type AnnouncedLimit, announcedLimits } from "../../core/limits/ratelimit-fields.ts";
import type { Time } from "../../time/time.ts";
import { fieldLine } from "../headers.ts";
import type { ResponseHead } from "./stage.ts";

/** The facts about a host in the head of its response. */
export interface HostFeedback {
  readonly outcome: Outcome;
  /** Retry-After, in ms. */
  readonly retryAfterMs: number | undefined;
  /** Rate limits in the headers; undefined when there are none. */
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

/** Checks the names first, because parsing is expensive and most responses announce no limits. */
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

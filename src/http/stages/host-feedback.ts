import { type Outcome, SUCCESS, THROTTLED } from "../../core/breaker/classify.ts";
import { parseRetryAfterMs } from "../../core/breaker/retry-after.ts";
import {
  matchesHeader,
  matchesStatus,
  NO_THROTTLE_RULES,
  type ThrottleRule,
} from "../../core/breaker/throttle-rule.ts";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import { type AnnouncedLimit, announcedLimits, leastRemaining } from "../../core/limits/ratelimit-fields.ts";
import { redactedText } from "../../core/text/redaction.ts";
import { messageOf } from "../../errors.ts";
import type { BreakerRegistry } from "../../gate/breaker-registry.ts";
import { breakersOf } from "../../gate/registry-breakers.ts";
import type { Grant } from "../../limiter/grant.ts";
import type { Time } from "../../time/time.ts";
import type { CallOptions } from "../call-options.ts";
import { fieldLine } from "../headers.ts";
import { judgementOf } from "./judged-outcome.ts";
import type { ResponseHead } from "./stage.ts";

/** The facts about a host in the head of its response. */
export interface HostFeedback {
  readonly outcome: Outcome;
  /** Retry-After, in ms. */
  readonly retryAfterMs: number | undefined;
  /** Rate limits in the headers; undefined when there are none. */
  readonly announced: readonly AnnouncedLimit[] | undefined;
  /** Rules that recognise a throttle if they match the body too. */
  readonly bodyRules: readonly ThrottleRule[];
}

/** The request that a response answers, as far as it decides how the response is classified. */
export interface JudgedRequest {
  readonly host: string;
  readonly path: string;
  readonly call: Pick<CallOptions, "outcome">;
}

export function hostFeedback(
  head: ResponseHead,
  { host, path, call }: JudgedRequest,
  breakers: BreakerRegistry,
  time: Time,
): HostFeedback {
  const { status, headers } = head;
  const retryAfter = headers["retry-after"];
  const retryAfterMs =
    retryAfter === undefined
      ? undefined
      : parseRetryAfterMs(retryAfter, { responseDate: fieldLine(headers["date"]), wallMs: time.wallMs() });
  const announced = announcements(headers, time);
  const outcome = breakers.classify({
    status,
    retryAfterMs,
    remaining: announced && leastRemaining(announced),
    isMemento: headers["memento-datetime"] !== undefined,
  });
  const judgement = call.outcome && judgementOf(head, call.outcome);
  const rules =
    judgement === undefined ? matchingRules(breakersOf(breakers).throttleRules(host, path), head) : NO_THROTTLE_RULES;
  // True for nearly every response.
  if (outcome.kind === "success" && (retryAfterMs ?? announced ?? judgement) === undefined && rules.length === 0)
    return PLAIN_SUCCESS;
  const feedback = { outcome, retryAfterMs, announced, bodyRules: NO_THROTTLE_RULES };
  if (judgement !== undefined) return { ...feedback, ...judgement };
  // An archive replays the response of another server: the rules of the archive do not apply to it.
  if (rules.length === 0 || headers["memento-datetime"] !== undefined) return feedback;
  if (outcome.kind === "failure" && outcome.throttled) return feedback;
  const headRule = rules.find(({ body }) => body === undefined);
  return headRule === undefined ? { ...feedback, bodyRules: rules } : asThrottled(feedback, headRule);
}

/** Nothing is allocated for a response whose status no rule names: the policy has rules for every host. */
function matchingRules(rules: readonly ThrottleRule[], { status, headers }: ResponseHead): readonly ThrottleRule[] {
  for (const first of rules) {
    if (!matchesStatus(first, status)) continue;
    return rules.filter(rule => matchesStatus(rule, status) && matchesHeader(rule, name => fieldLine(headers[name])));
  }
  return NO_THROTTLE_RULES;
}

const PLAIN_SUCCESS: HostFeedback = Object.freeze({
  outcome: SUCCESS,
  retryAfterMs: undefined,
  announced: undefined,
  bodyRules: NO_THROTTLE_RULES,
});

/** The feedback of a response that a rule has recognised as a throttle. */
export function asThrottled(feedback: HostFeedback, { retryAfterMs }: ThrottleRule): HostFeedback {
  const pauseMs = feedback.retryAfterMs ?? retryAfterMs;
  return { ...feedback, outcome: THROTTLED, retryAfterMs: pauseMs, bodyRules: NO_THROTTLE_RULES };
}

const SHORTEST_LIMIT_FIELD = "ratelimit".length;

/** Checks the names first, because parsing is expensive and most responses announce no limits. */
function announcements(headers: HeaderFields, time: Time): readonly AnnouncedLimit[] | undefined {
  for (const name in headers) {
    if (name.length < SHORTEST_LIMIT_FIELD) continue;
    if (!name.includes("ratelimit") && !name.startsWith("x-rate-limit") && name !== "x-concurrency-limit") continue;
    return parsedAnnouncements(headers, time.wallMs());
  }
  return undefined;
}

function parsedAnnouncements(headers: HeaderFields, wallMs: number): readonly AnnouncedLimit[] | undefined {
  const found = announcedLimits(field => fieldLine(headers[field]), wallMs);
  return found.length === 0 ? undefined : found;
}

/**
 * Settles the costs of an attempt, when its response has begun: by the headers that the policy names, then by the option
 * of the call. An error of the caller's function becomes a process warning; the response is not affected.
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
    const message = `the call option settleCosts failed: ${redactedText(messageOf(error))}; the call keeps its estimated costs`;
    process.emitWarning(message, { type: "DocstokgWarning" });
  }
}

/** A fraction is rounded up. Undefined if the header is absent, repeated or not a number. */
function wholeNumber(field: string | readonly string[] | undefined): number | undefined {
  if (typeof field !== "string" || !/^\d{1,15}(?:\.\d{1,20})?$/.test(field.trim())) return undefined;
  return Math.ceil(Number(field));
}

import type { Hub } from "../http/hub.ts";
import { type AttemptFailure, isTransientStatus } from "./attempt-failure.ts";
import { challengeIn, challengeInFields } from "./downloads/challenge-page.ts";

import type { Finding, ResolverResponse } from "./resolvers/resolver.ts";
import { plainHeaders, readText, redirectTarget } from "./response-body.ts";
import type { ResolverStep } from "./step.ts";

export type ResolverQueryResult =
  | { readonly kind: "finding"; readonly finding: Finding; readonly status: number; readonly bytes: number }
  | { readonly kind: "redirect"; readonly url: string; readonly status: number }
  | ({ readonly kind: "failed"; readonly bytes: number } & AttemptFailure);

export interface ResolverQueryOptions {
  readonly hub: Pick<Hub, "request">;
  readonly maxWaitMs: number;
}

/** Answers of services are some kilobytes; a list of a thousand places is a megabyte. */
const RESPONSE_BYTES_MAX = 4 * 2 ** 20;
const DEADLINE_MS = 90_000;

/** Sends one question and has its resolver read the answer. Rejects with what the hub refuses, and what fails. */
export async function queryResolver(
  { hub, maxWaitMs }: ResolverQueryOptions,
  step: ResolverStep,
  signal: AbortSignal,
): Promise<ResolverQueryResult> {
  const { resolver, request, url, about } = step;
  const { role, headers: sent, maxBytes = RESPONSE_BYTES_MAX } = request;
  const call = { role, resolver: resolver.name, maxWaitMs, deadlineMs: DEADLINE_MS, signal };
  const response = await hub.request(url, { ...call, headers: { ...sent } });
  const { statusCode: status, body } = response;
  const headers = plainHeaders(response.headers);
  const redirectUrl = redirectTarget(status, headers["location"], url);
  if (redirectUrl !== undefined) {
    await body.dump();
    return { kind: "redirect", url: redirectUrl, status };
  }
  const { text, bytes, isComplete } = await readText(body, maxBytes);
  const isPage = role === "landing";
  const challenge = isPage ? (challengeInFields(headers) ?? challengeIn(text)) : undefined;
  if (challenge !== undefined) return failed("challenge-page", challenge, status, bytes, false);
  // Of a page the beginning is enough: what it says of itself stands there.
  if (!isComplete && !isPage) return failed("too-large", `more than ${maxBytes} bytes`, status, bytes, false);
  const finding = parseSafely(step, { url, status, headers, body: text });
  if (finding.kind !== "failure") return { kind: "finding", finding, status, bytes };
  const { reason, message } = finding;
  if (reason === "unavailable") return failed("http-status", message, status, bytes, true);
  return failed(reason, message, status, bytes, isTransientStatus(status));

  /** A resolver reads what strangers write. Whatever it trips over is theirs, and must not end a run. */
  function parseSafely({ resolver: reader }: ResolverStep, answer: ResolverResponse): Finding {
    try {
      return reader.read(answer, about);
    } catch (error) {
      return { kind: "failure", reason: "unreadable", message: error instanceof Error ? error.name : String(error) };
    }
  }
}

function failed(
  reason: AttemptFailure["reason"],
  message: string,
  status: number,
  bytes: number,
  mayRetry: boolean,
): ResolverQueryResult {
  return { kind: "failed", reason, message, status, bytes, mayRetry };
}

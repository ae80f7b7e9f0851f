import { ACCEPTED_CODINGS } from "../files/content-coding.ts";
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
  /** How long a request may wait at the gate. If it would wait longer, the hub refuses it and it is queued again. */
  readonly maxWaitMs: number;
}

/** Responses of services have some kilobytes; a list of a thousand locations has a megabyte. */
const RESPONSE_BYTES_MAX = 4 * 2 ** 20;
const DEADLINE_MS = 90_000;

/** Sends one request of a resolver and parses the response. Rejects with a refusal of the hub or a network error. */
export async function queryResolver(
  { hub, maxWaitMs }: ResolverQueryOptions,
  step: ResolverStep,
  signal: AbortSignal,
): Promise<ResolverQueryResult> {
  const { resolver, request, url, about } = step;
  const { role, headers: sent, maxBytes = RESPONSE_BYTES_MAX } = request;
  const call = { role, resolver: resolver.name, maxWaitMs, deadlineMs: DEADLINE_MS, signal };
  const response = await hub.request(url, { ...call, headers: { "accept-encoding": ACCEPTED_CODINGS, ...sent } });
  const { statusCode: status, body } = response;
  const headers = plainHeaders(response.headers);
  const redirectUrl = redirectTarget(status, headers["location"], url);
  if (redirectUrl !== undefined) {
    await body.dump();
    return { kind: "redirect", url: redirectUrl, status };
  }
  const { text, bytes, isComplete } = await readText(response, maxBytes);
  const isPage = role === "landing";
  const challenge = isPage ? (challengeInFields(headers) ?? challengeIn(text)) : undefined;
  if (challenge !== undefined) return failed("challenge-page", challenge, status, bytes, false);
  // A page may be cut: its metadata is at its beginning.
  if (!isComplete && !isPage)
    return failed("too-large", `response larger than ${maxBytes} bytes`, status, bytes, false);
  const finding = parseSafely(step, { url, status, headers, body: text });
  if (finding.kind !== "failure") return { kind: "finding", finding, status, bytes };
  const { reason, message } = finding;
  if (reason === "unavailable") return failed("http-status", message, status, bytes, true);
  return failed(reason, message, status, bytes, isTransientStatus(status));

  /** Resolvers parse untrusted text: an unexpected error must not end the run. */
  function parseSafely({ resolver: parser }: ResolverStep, text: ResolverResponse): Finding {
    try {
      return parser.parse(text, about);
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

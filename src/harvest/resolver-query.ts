import type { Hub } from "../http/hub.ts";
import { isPassing, type Trouble } from "./attempt-failure.ts";
import { challengeIn, challengeInFields } from "./downloads/challenge-page.ts";

import type { Finding, ResolverAnswer } from "./resolvers/resolver.ts";
import { plainHeaders, readText, redirectOf } from "./response-body.ts";
import type { AskStep } from "./step.ts";

export type Asked =
  | { readonly kind: "finding"; readonly finding: Finding; readonly status: number; readonly bytes: number }
  | { readonly kind: "redirect"; readonly url: string; readonly status: number }
  | ({ readonly kind: "failed"; readonly bytes: number } & Trouble);

export interface AskingOptions {
  readonly hub: Pick<Hub, "request">;
  readonly maxWaitMs: number;
}

/** Answers of services are some kilobytes; a list of a thousand places is a megabyte. */
const ANSWER_BYTES_MAX = 4 * 2 ** 20;
const DEADLINE_MS = 90_000;

/** Sends one question and has its resolver read the answer. Rejects with what the hub refuses, and what fails. */
export async function askOnce({ hub, maxWaitMs }: AskingOptions, step: AskStep, signal: AbortSignal): Promise<Asked> {
  const { resolver, question, url, about } = step;
  const { role, headers: sent, maxBytes = ANSWER_BYTES_MAX } = question;
  const call = { role, resolver: resolver.name, maxWaitMs, deadlineMs: DEADLINE_MS, signal };
  const response = await hub.request(url, { ...call, headers: { ...sent } });
  const { statusCode: status, body } = response;
  const headers = plainHeaders(response.headers);
  const onward = redirectOf(status, headers["location"], url);
  if (onward !== undefined) {
    await body.dump();
    return { kind: "redirect", url: onward, status };
  }
  const { text, bytes, isWhole } = await readText(body, maxBytes);
  const isPage = role === "landing";
  const challenge = isPage ? (challengeInFields(headers) ?? challengeIn(text)) : undefined;
  if (challenge !== undefined) return failed("challenge-page", challenge, status, bytes, false);
  // Of a page the beginning is enough: what it says of itself stands there.
  if (!isWhole && !isPage) return failed("too-large", `more than ${maxBytes} bytes`, status, bytes, false);
  const finding = readSafely(step, { url, status, headers, body: text });
  if (finding.kind !== "trouble") return { kind: "finding", finding, status, bytes };
  const { reason, message } = finding;
  if (reason === "unavailable") return failed("http-status", message, status, bytes, true);
  return failed(reason, message, status, bytes, isPassing(status));

  /** A resolver reads what strangers write. Whatever it trips over is theirs, and must not end a run. */
  function readSafely({ resolver: reader }: AskStep, answer: ResolverAnswer): Finding {
    try {
      return reader.read(answer, about);
    } catch (error) {
      return { kind: "trouble", reason: "unreadable", message: error instanceof Error ? error.name : String(error) };
    }
  }
}

function failed(reason: Trouble["reason"], message: string, status: number, bytes: number, mayPass: boolean): Asked {
  return { kind: "failed", reason, message, status, bytes, mayPass };
}

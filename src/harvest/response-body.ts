import type { Dispatcher } from "undici";
import { decodedBody } from "../files/content-coding.ts";
import { decideRedirect } from "../http/stages/redirect-hop.ts";

type Response = Pick<Dispatcher.ResponseData<unknown>, "headers" | "body">;

export interface BodyText {
  readonly text: string;
  readonly bytes: number;
  /** False if the body is longer than `maxBytes`; the rest was not read. */
  readonly isComplete: boolean;
}

/** The first `maxBytes` of a body, decoded, as text. The rest is not read: a page may be endless. */
export async function readText({ body, headers }: Response, maxBytes: number): Promise<BodyText> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of decodedBody(body, headers)) {
    const remainingBytes = maxBytes - bytes;
    chunks.push(chunk.length > remainingBytes ? chunk.subarray(0, remainingBytes) : chunk);
    bytes += Math.min(remainingBytes, chunk.length);
    // Leaving the loop destroys the body, which frees its connection and slot.
    if (chunk.length > remainingBytes)
      return { text: Buffer.concat(chunks).toString("utf8"), bytes, isComplete: false };
  }
  return { text: Buffer.concat(chunks).toString("utf8"), bytes, isComplete: true };
}

/** Headers by lower-case names; repeated fields are joined by a comma. */
export function plainHeaders(headers: Dispatcher.ResponseData["headers"]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]],
    ),
  );
}

/** Where a redirect leads, without credentials, or why it cannot be followed; undefined if the response is no redirect. */
export function redirectTarget(
  status: number,
  location: string | undefined,
  url: string,
): { readonly url: string } | { readonly problem: string } | undefined {
  const decision = decideRedirect({ status, location }, { url: new URL(url), method: "GET" });
  if (decision.kind === "none") return undefined;
  return decision.kind === "hop" ? { url: decision.url.href } : { problem: decision.message };
}

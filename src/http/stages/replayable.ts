import type { OutgoingRequest } from "./stage.ts";

const SAFE_TO_REPEAT: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** True when the request may be sent twice and its body can be read twice; a stream cannot. */
export function isReplayable({ method, body, call }: OutgoingRequest): boolean {
  const isIdempotent = call.idempotent ?? SAFE_TO_REPEAT.has(method);
  return isIdempotent && isReplayableBody(body);
}

export function isReplayableBody(body: OutgoingRequest["body"]): boolean {
  return body === undefined || body === null || typeof body === "string" || ArrayBuffer.isView(body);
}

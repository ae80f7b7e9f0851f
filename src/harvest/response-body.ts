import type { Dispatcher } from "undici";
import { BodyReader } from "../files/body-reader.ts";
import { decodedBody } from "../files/content-coding.ts";
import { type MinSpeed, SpeedCheck } from "../files/speed-check.ts";
import { decideRedirect } from "../http/stages/redirect-hop.ts";

type Response = Pick<Dispatcher.ResponseData<unknown>, "headers" | "body">;

export interface BodyText {
  readonly text: string;
  readonly bytes: number;
  /** False if the body is longer than `maxBytes`; the rest was not read. */
  readonly isComplete: boolean;
}

/** `isEnough` is asked about chunks that begin within so many bytes. */
const BEGINNING_BYTES = 1024;

/** The bodies of redirects are short; the rest of a file that is not wanted is not read. */
const DISCARDED_BYTES_MAX = 16_384;

/**
 * The first `maxBytes` of a body, decoded, as text. The rest is not read: a page may be endless. Rejects with the error
 * of the body, or with one of the code `TOO_SLOW`.
 * @param isEnough whether these first bytes are all that is needed. @default never
 */
export async function readText(
  { body, headers }: Response,
  maxBytes: number,
  minSpeed: MinSpeed | undefined,
  isEnough: (beginning: Buffer) => boolean = () => false,
): Promise<BodyText> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const reader = new BodyReader(decodedBody(body, headers));
  const speed = minSpeed && new SpeedCheck(minSpeed, reader, () => bytes);
  try {
    for (let chunk = await reader.next(); chunk !== undefined; chunk = await reader.next()) {
      const remainingBytes = maxBytes - bytes;
      chunks.push(chunk.length > remainingBytes ? chunk.subarray(0, remainingBytes) : chunk);
      const isBeginning = bytes < BEGINNING_BYTES;
      bytes += Math.min(remainingBytes, chunk.length);
      if (chunk.length > remainingBytes || (isBeginning && isEnough(Buffer.concat(chunks))))
        return { text: Buffer.concat(chunks).toString("utf8"), bytes, isComplete: false };
    }
  } catch (error) {
    throw speed?.error ?? error;
  } finally {
    speed?.stop();
    // Frees the connection and the slot of a body that has not ended.
    reader.drop();
  }
  return { text: Buffer.concat(chunks).toString("utf8"), bytes, isComplete: true };
}

/** Reads a short body to its end, so that its connection can be used again. A long, slow or broken body is dropped. */
export async function discardBody(response: Response, minSpeed: MinSpeed | undefined): Promise<void> {
  await readText(response, DISCARDED_BYTES_MAX, minSpeed).catch(() => undefined);
}

/** Headers by lower-case names; repeated fields are joined by a comma. */
export function plainHeaders(headers: Dispatcher.ResponseData["headers"]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]],
    ),
  );
}

/** The URL of a redirect, without user and password, or why it cannot be followed; undefined if there is no redirect. */
export function redirectTarget(
  status: number,
  location: string | undefined,
  url: string,
): { readonly url: string } | { readonly problem: string } | undefined {
  const decision = decideRedirect({ status, location }, { url: new URL(url), method: "GET" });
  if (decision.kind === "none") return undefined;
  return decision.kind === "hop" ? { url: decision.url.href } : { problem: decision.message };
}

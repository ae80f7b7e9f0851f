import type { Dispatcher } from "undici";

type Body = Dispatcher.ResponseData["body"];

export interface BodyText {
  readonly text: string;
  readonly bytes: number;
  /** False when it is longer than was asked for; the rest was dropped. */
  readonly isComplete: boolean;
}

/** The beginning of a body as text. The rest is not read: a page may be endless. */
export async function readText(body: Body, maxBytes: number): Promise<BodyText> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    const remainingBytes = maxBytes - bytes;
    chunks.push(chunk.length > remainingBytes ? chunk.subarray(0, remainingBytes) : chunk);
    bytes += Math.min(remainingBytes, chunk.length);
    // Leaving the loop destroys the body, and frees its connection and slot.
    if (chunk.length > remainingBytes)
      return { text: Buffer.concat(chunks).toString("utf8"), bytes, isComplete: false };
  }
  return { text: Buffer.concat(chunks).toString("utf8"), bytes, isComplete: true };
}

/** Lets go of a body without reading it. That is an error to the stream, and none to us. */
export function discardBody(body: Body): void {
  body.on("error", () => undefined);
  body.destroy();
}

/** By lower-case names; of a field that came several times, all values. */
export function plainHeaders(headers: Dispatcher.ResponseData["headers"]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]],
    ),
  );
}

/** Where a redirect leads, without whom it would have us be; undefined when it is none, or leads out of the web. */
export function redirectTarget(status: number, location: string | undefined, url: string): string | undefined {
  if (![301, 302, 303, 307, 308].includes(status) || location === undefined) return undefined;
  const target = URL.parse(location, url);
  if (target === null || !/^https?:$/.test(target.protocol)) return undefined;
  target.username = "";
  target.password = "";
  target.hash = "";
  return target.href;
}

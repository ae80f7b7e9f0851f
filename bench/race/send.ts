/** One attempt of another client: Node's fetch, or undici's request if a dispatcher replaces the network. */
import { type Dispatcher, request } from "undici";

export interface PeerReply {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
}

export type PeerSend = (url: string) => Promise<PeerReply>;

export function sendBy(wire: Dispatcher | undefined): PeerSend {
  if (wire !== undefined) return url => sendOver(wire, url);
  return async url => {
    const response = await fetch(url);
    await response.arrayBuffer();
    return { status: response.status, retryAfterMs: msOf(response.headers.get("retry-after")) };
  };
}

/** Through a dispatcher of undici. */
export async function sendOver(dispatcher: Dispatcher, url: string): Promise<PeerReply> {
  const { statusCode, headers, body } = await request(url, { dispatcher });
  await body.dump();
  const said = headers["retry-after"];
  return { status: statusCode, retryAfterMs: msOf(typeof said === "string" ? said : null) };
}

/** The servers of the race send whole seconds. */
function msOf(seconds: string | null): number | undefined {
  return seconds === null ? undefined : Number(seconds) * 1000;
}

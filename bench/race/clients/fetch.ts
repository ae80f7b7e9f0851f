import type { Client, ClientSetup } from "../client.ts";
import { withRetry } from "../retry.ts";
import { sendBy } from "../send.ts";

/** No limiter: the server rejects what exceeds the limit. */
export async function open({ wire, random }: ClientSetup): Promise<Client> {
  const send = sendBy(wire);
  return {
    get: url => withRetry(() => send(url), random),
    close: async () => undefined,
  };
}

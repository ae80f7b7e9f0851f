import { Agent, interceptors } from "undici";
import type { Client, ClientSetup } from "../client.ts";
import { RETRIED_STATUSES, RETRY } from "../retry.ts";
import { sendOver } from "../send.ts";

/**
 * Its own retries, with the same numbers as the other clients. It has no jitter, and shortens a Retry-After to its cap.
 */
export async function open({ wire }: ClientSetup): Promise<Client> {
  const dispatcher = (wire ?? new Agent()).compose(
    interceptors.retry({
      maxRetries: RETRY.attempts - 1,
      minTimeout: RETRY.baseMs,
      maxTimeout: RETRY.capMs,
      timeoutFactor: 2,
      retryAfter: true,
      statusCodes: [...RETRIED_STATUSES],
    }),
  );
  return {
    get: async url => (await sendOver(dispatcher, url)).status,
    close: () => dispatcher.close(),
  };
}

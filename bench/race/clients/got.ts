import got from "got";
import type { Client } from "../client.ts";
import { RETRIED_STATUSES, RETRY } from "../retry.ts";

/** Its own retries, with the same numbers as the other clients: it obeys Retry-After, and doubles its pauses with noise. */
export async function open(): Promise<Client> {
  const client = got.extend({
    throwHttpErrors: false,
    retry: {
      limit: RETRY.attempts - 1,
      statusCodes: [...RETRIED_STATUSES],
      backoffLimit: RETRY.capMs,
      noise: 100,
    },
  });
  return {
    get: async url => (await client.get(url)).statusCode,
    close: async () => undefined,
  };
}

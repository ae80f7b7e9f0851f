import { Agent } from "node:http";
import axios from "axios";
import axiosRetry from "axios-retry";
import type { Client } from "../client.ts";
import { RETRIED_STATUSES, RETRY } from "../retry.ts";

/** Its `exponentialDelay`, which obeys Retry-After and has jitter, with the same first pause as the other clients. */
export async function open(): Promise<Client> {
  const httpAgent = new Agent({ keepAlive: true });
  const client = axios.create({ httpAgent, validateStatus: status => !RETRIED_STATUSES.includes(status) });
  axiosRetry(client, {
    retries: RETRY.attempts - 1,
    retryCondition: () => true,
    retryDelay: (count, error) => axiosRetry.exponentialDelay(count, error, RETRY.baseMs / 2),
  });
  return {
    get: async url => (await client.get(url)).status,
    close: async () => httpAgent.destroy(),
  };
}

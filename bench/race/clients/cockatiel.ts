import {
  ConsecutiveBreaker,
  circuitBreaker,
  ExponentialBackoff,
  handleAll,
  handleWhenResult,
  retry,
  wrap,
} from "cockatiel";
import type { Client, ClientSetup } from "../client.ts";
import { RETRIED_STATUSES, RETRY } from "../retry.ts";
import { type PeerReply, sendBy } from "../send.ts";

/** A breaker within a retry, as in its documentation. It knows neither limits nor Retry-After. */
export async function open({ wire }: ClientSetup): Promise<Client> {
  const send = sendBy(wire);
  const isFailure = handleWhenResult(reply => RETRIED_STATUSES.includes((reply as PeerReply).status)).orType(Error);
  const policy = wrap(
    retry(
      handleAll.orWhenResult(reply => RETRIED_STATUSES.includes((reply as PeerReply).status)),
      {
        maxAttempts: RETRY.attempts - 1,
        backoff: new ExponentialBackoff({ initialDelay: RETRY.baseMs, maxDelay: RETRY.capMs }),
      },
    ),
    circuitBreaker(isFailure, { halfOpenAfter: 1000, breaker: new ConsecutiveBreaker(5) }),
  );
  return {
    get: async url => (await policy.execute(() => send(url))).status,
    close: async () => undefined,
  };
}

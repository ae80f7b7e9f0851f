/**
 * When this process writes request headers, by the machine's monotonic clock, which all processes share.
 * undici publishes `sendHeaders` immediately before the write, and the hub counts a request no earlier than its write, so
 * law L1 can be judged by these stamps without any tolerance, however busy the machine is. A server's own clock cannot:
 * a starved server notices two requests late and close together.
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { systemTime } from "../../src/time/system-time.ts";

const CHANNEL = "undici:client:sendHeaders";

interface SendHeaders {
  readonly request: { readonly origin?: string | URL };
}

export interface WriteStamps {
  /** In the order of the writes, for each origin. */
  readonly byOriginUs: ReadonlyMap<string, readonly number[]>;
  /** All of them, in the order of the writes. */
  readonly allUs: readonly number[];
  stop(): void;
}

export function recordWrites(): WriteStamps {
  const byOriginUs = new Map<string, number[]>();
  const allUs: number[] = [];
  const record = (message: unknown) => {
    const stampUs = systemTime.machineUs();
    const origin = String((message as SendHeaders).request.origin ?? "");
    allUs.push(stampUs);
    const originStampsUs = byOriginUs.get(origin) ?? [];
    originStampsUs.push(stampUs);
    byOriginUs.set(origin, originStampsUs);
  };
  subscribe(CHANNEL, record);
  return { byOriginUs, allUs, stop: () => unsubscribe(CHANNEL, record) };
}

/** The most stamps in any half-open interval of this length. */
export function mostWithin(stampsUs: readonly number[], windowUs: number): number {
  const sorted = stampsUs.toSorted((a, b) => a - b);
  let from = 0;
  let most = 0;
  for (const [index, us] of sorted.entries()) {
    while ((sorted[from] ?? us) <= us - windowUs) from += 1;
    most = Math.max(most, index - from + 1);
  }
  return most;
}

/** The libraries that can queue calls, with a limit of 50 per second. */
import Bottleneck from "bottleneck";
import { RateLimiter as UnkeyedLimiter } from "limiter";
import PQueue from "p-queue";
import pThrottle from "p-throttle";
import { RateLimiterMemory, RateLimiterQueue } from "rate-limiter-flexible";
import { SkippingTime } from "../kit/skipping-time.ts";
import { limiterOf } from "./ours.ts";

export const LIMIT = 50;
export const WINDOW_MS = 1000;

export interface Sender {
  readonly name: string;
  readonly isOurs: boolean;
  readonly guardMs: number;
  /** Waits until the call may start, then calls the function. */
  send(start: () => void): Promise<unknown>;
}

export function senders(): readonly Sender[] {
  return [ours(25), ours(0), strictThrottle(), strictQueue(), fixedQueue(), reservoir(), flexibleQueue(), unkeyed()];
}

function ours(guardMs: number): Sender {
  const limiter = limiterOf(`${LIMIT}/SECOND`, new SkippingTime(), guardMs);
  return {
    name: `docstokg acquire, guard ${guardMs} ms`,
    isOurs: true,
    guardMs,
    async send(start) {
      using _grant = await limiter.acquire({ host: "host.example.org", maxWaitMs: Number.POSITIVE_INFINITY });
      start();
    },
  };
}

function peer(name: string, send: Sender["send"]): Sender {
  return { name, isOurs: false, guardMs: 0, send };
}

function strictThrottle(): Sender {
  const throttle = pThrottle({ limit: LIMIT, interval: WINDOW_MS, strict: true });
  const throttled = throttle((start: () => void) => start());
  return peer("p-throttle strict", async start => throttled(start));
}

function strictQueue(): Sender {
  const queue = new PQueue({ intervalCap: LIMIT, interval: WINDOW_MS, strict: true });
  return peer("p-queue strict", start => queue.add(start));
}

function fixedQueue(): Sender {
  const queue = new PQueue({ intervalCap: LIMIT, interval: WINDOW_MS });
  return peer("p-queue", start => queue.add(start));
}

function reservoir(): Sender {
  const bottleneck = new Bottleneck({
    reservoir: LIMIT,
    reservoirRefreshAmount: LIMIT,
    reservoirRefreshInterval: WINDOW_MS,
  });
  return peer("bottleneck reservoir", start => bottleneck.schedule(async () => start()));
}

function flexibleQueue(): Sender {
  const queue = new RateLimiterQueue(new RateLimiterMemory({ points: LIMIT, duration: WINDOW_MS / 1000 }));
  return peer("rate-limiter-flexible queue", async start => {
    await queue.removeTokens(1);
    start();
  });
}

function unkeyed(): Sender {
  const limiter = new UnkeyedLimiter({ tokensPerInterval: LIMIT, interval: WINDOW_MS });
  return peer("limiter removeTokens", async start => {
    await limiter.removeTokens(1);
    start();
  });
}

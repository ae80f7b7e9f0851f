import type { HubSnapshot } from "../http/hub.ts";
import type { Time, Timer } from "../time/time.ts";

/** A limit or a cooldown that requests wait for. */
export interface LimitWait {
  /** The host, or `service:host`. */
  readonly key: string;
  /** The limit as the policy writes it, such as `48/HOUR`; or why the host is in cooldown. */
  readonly limit: string;
  /** Milliseconds until the next request may be sent. */
  readonly waitMs: number;
  /** How many requests wait; for a cooldown, the requests of the hub to all hosts. */
  readonly waiting: number;
}

/** A shorter wait is not reported. */
const MIN_WAIT_MS = 5000;
const REPEAT_MS = 60_000;

/** Reports the limits and cooldowns that requests wait for: after 5 seconds, then once a minute. */
export class WaitReporter {
  readonly #snapshot: () => HubSnapshot;
  readonly #time: Time;
  readonly #onWait: (wait: LimitWait) => void;
  #timer: Timer | undefined;

  constructor(snapshot: () => HubSnapshot, time: Time, onWait: (wait: LimitWait) => void) {
    this.#snapshot = snapshot;
    this.#time = time;
    this.#onWait = onWait;
  }

  start(): void {
    this.#arm(MIN_WAIT_MS);
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #arm(delayMs: number): void {
    this.#timer = this.#time.setTimer(delayMs, () => {
      const waits = waitsOf(this.#snapshot());
      for (const wait of waits) this.#onWait(wait);
      this.#arm(waits.length > 0 ? REPEAT_MS : MIN_WAIT_MS);
    });
  }
}

/** The limits and cooldowns that requests wait for, longest wait first. A wait of less than 5 seconds is left out. */
export function waitsOf({
  keys,
  hosts,
  waiting,
}: Pick<HubSnapshot, "keys" | "hosts" | "waiting">): readonly LimitWait[] {
  const limits = keys
    .filter(key => key.waiting > 0 && key.nextFreeMs >= MIN_WAIT_MS)
    .map(
      (key): LimitWait => ({
        key: key.key.replace(/^(?:group|service) /, ""),
        limit: key.constraint?.limit ?? "limit",
        waitMs: key.nextFreeMs,
        waiting: key.waiting,
      }),
    );
  const cooldowns =
    waiting === 0
      ? []
      : hosts
          .filter(({ remainingMs }) => remainingMs >= MIN_WAIT_MS)
          .map(({ host, reason, remainingMs }): LimitWait => {
            const limit = reason === "retry-after" ? "Retry-After of the server" : `circuit open (${reason})`;
            return { key: host, limit, waitMs: remainingMs, waiting };
          });
  return [...limits, ...cooldowns].sort((a, b) => b.waitMs - a.waitMs);
}

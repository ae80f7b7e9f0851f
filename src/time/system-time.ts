// Imported, because the global `performance` is a getter and this is on the path of every request.
import { performance } from "node:perf_hooks";
import { sleep } from "./sleep.ts";
import type { Time, Timer } from "./time.ts";

/** For a longer delay Node prints a warning and uses 1 ms. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** The clocks and timers of this machine. `test/code-rules.test.ts` checks that no other file reads a clock. */
export class SystemTime implements Time {
  /** Elapsed time in whole microseconds since the start of the process. */
  monotonicUs(): number {
    return Math.floor(performance.now() * 1000);
  }

  /** Elapsed time in whole microseconds since an origin that all processes of this machine share. */
  machineUs(): number {
    return Number(process.hrtime.bigint() / 1000n);
  }

  /** The wall clock in epoch milliseconds. */
  wallMs(): number {
    return Date.now();
  }

  /** Calls `fire` once, about `delayMs` milliseconds from now. Delays of more than 24 days are possible. */
  setTimer(delayMs: number, fire: () => void): Timer {
    // A delay that a caller has computed may be negative, and Node prints a warning for delays below 0.
    let leftMs = Math.max(0, Math.ceil(delayMs));
    let handle: NodeJS.Timeout;
    let keepsAlive = true;
    const arm = () => {
      const stepMs = Math.min(leftMs, MAX_TIMEOUT_MS);
      leftMs -= stepMs;
      handle = setTimeout(leftMs > 0 ? arm : fire, stepMs);
      if (!keepsAlive) handle.unref();
    };
    arm();
    return {
      cancel: () => clearTimeout(handle),
      unref: () => {
        keepsAlive = false;
        handle.unref();
      },
      ref: () => {
        keepsAlive = true;
        handle.ref();
      },
    };
  }

  /** Resolves after `ms` milliseconds, never early. Rejects with the signal's reason when the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleep(this, ms, signal);
  }
}

/** The default of every `time` option. */
export const systemTime: Time = new SystemTime();

// The global of the same name is a getter, and this is read for every decision.
import { performance } from "node:perf_hooks";
import { sleep } from "./sleep.ts";
import type { Time, Timer } from "./time.ts";

/** Node answers a longer delay with one of 1 ms and a warning. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** The clocks and timers of this machine. The only file that reads one; a test of the house sees to it. */
export class SystemTime implements Time {
  monotonicUs(): number {
    return Math.floor(performance.now() * 1000);
  }

  machineUs(): number {
    return Number(process.hrtime.bigint() / 1000n);
  }

  wallMs(): number {
    return Date.now();
  }

  setTimer(delayMs: number, fire: () => void): Timer {
    // What is due may have passed since it was computed, and Node warns of delays below 0.
    let leftMs = Math.max(0, Math.ceil(delayMs));
    let handle: NodeJS.Timeout;
    const arm = () => {
      const stepMs = Math.min(leftMs, MAX_TIMEOUT_MS);
      leftMs -= stepMs;
      handle = setTimeout(leftMs > 0 ? arm : fire, stepMs);
    };
    arm();
    return { cancel: () => clearTimeout(handle) };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleep(this, ms, signal);
  }
}

/** The one that is used where no other is handed in. */
export const systemTime: Time = new SystemTime();

import type { Time, Timer } from "./time.ts";

/** Sets a timer that does not keep the process alive (law S8). */
export function setUnreferencedTimer(time: Time, delayMs: number, fire: () => void): Timer {
  const timer = time.setTimer(delayMs, fire);
  timer.unref?.();
  return timer;
}

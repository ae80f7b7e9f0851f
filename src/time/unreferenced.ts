import type { Time, Timer } from "./time.ts";

/** Sets a timer that does not keep the program alive (law S8). */
export function unreferenced(time: Time, delayMs: number, fire: () => void): Timer {
  const timer = time.setTimer(delayMs, fire);
  timer.unref?.();
  return timer;
}

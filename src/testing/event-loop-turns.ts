import { systemTime } from "../time/system-time.ts";
import type { Timer } from "../time/time.ts";
import { setUnreferencedTimer } from "../time/unreferenced-timer.ts";

/** Data that is read in the poll phase of one turn may belong to a connection that was accepted in the turn before. */
const TURNS = 3;
const TURN_MS = 1;

/**
 * When the last turns of the event loop began. A process that is blocked, or gets no CPU time, reads data later than it
 * arrived. Data that is read in one turn had not arrived in the poll phase of the turn before, or the process would have
 * read it there.
 */
export class EventLoopTurns {
  #beganMs: readonly number[] = [];
  #timer: Timer | undefined;
  #immediate: NodeJS.Immediate | undefined;

  start(): void {
    this.#beganMs = Array<number>(TURNS).fill(nowMs());
    this.#schedule();
  }

  stop(): void {
    this.#timer?.cancel();
    clearImmediate(this.#immediate);
  }

  /** Data that is read now did not arrive before this moment, in milliseconds of the monotonic clock. */
  get earliestArrivalMs(): number {
    return this.#beganMs[0] ?? nowMs();
  }

  #schedule(): void {
    this.#timer = setUnreferencedTimer(systemTime, TURN_MS, () => {
      this.#beganMs = [...this.#beganMs.slice(1), nowMs()];
      // A timer that is set here could fire in this turn again. The check phase follows the poll phase. The immediate is
      // not unreferenced: then the poll phase would wait for the next event before it.
      this.#immediate = setImmediate(() => this.#schedule());
    });
  }
}

function nowMs(): number {
  return systemTime.monotonicUs() / 1000;
}

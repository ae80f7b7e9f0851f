/** The other libraries, each with the documented options that make it fastest. */
import { EventEmitter } from "node:events";
import { type CircuitBreakerPolicy, ConsecutiveBreaker, circuitBreaker, handleAll } from "cockatiel";
import CircuitBreaker from "opossum";
import { FAIL_MAX, RESET_S } from "./ours.ts";
import { task } from "./task.ts";

const ROTATE_MS = 1000;

export function cockatielCircuit(): CircuitBreakerPolicy {
  return circuitBreaker(handleAll, { halfOpenAfter: RESET_S * 1000, breaker: new ConsecutiveBreaker(FAIL_MAX) });
}

/**
 * No time-out (it costs a timer for each call), no percentiles, no snapshots, and one timer for the windows of all
 * circuits instead of one for each.
 */
export class OpossumCircuits {
  readonly #controller = new EventEmitter().setMaxListeners(0);
  #rotatedMs = performance.now();

  circuit(): CircuitBreaker<[succeeds?: boolean], void> {
    return new CircuitBreaker(task, {
      timeout: false,
      resetTimeout: RESET_S * 1000,
      volumeThreshold: FAIL_MAX,
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
      rotateBucketController: this.#controller,
    });
  }

  /**
   * Replaces the timer, which cannot fire during a loop of awaits: the windows would grow during the whole measurement.
   */
  rotateWhenDue(): void {
    const nowMs = performance.now();
    if (nowMs - this.#rotatedMs < ROTATE_MS) return;
    this.#rotatedMs = nowMs;
    this.#controller.emit("rotate");
  }
}

/** Neither library has keys. Many hosts are a Map of circuits, one host is a circuit. */
export function finder<Circuit>(hosts: readonly string[], make: () => Circuit): (host: string) => Circuit {
  const circuits = new Map(hosts.map(host => [host, make()]));
  const [only] = circuits.values();
  return hosts.length === 1 ? () => only as Circuit : host => circuits.get(host) as Circuit;
}

import { Random } from "../sim/random.ts";
import type { ChaosProcess } from "./chaos-process.ts";
import type { Fault, FaultKind } from "./fault.ts";
import { withProcessFault } from "./process-faults.ts";

/** A fault, and how long the fleet has worked undisturbed before it. */
export interface PlannedFault {
  readonly calmMs: number;
  readonly fault: Fault;
}

/** Every kind once in random order, then again: a short run meets as many kinds as possible. The seed decides all. */
export function* planOf(
  seed: number,
  kinds: readonly FaultKind[],
  fleet: readonly ChaosProcess[],
  [leastCalmMs, mostCalmMs]: readonly [number, number],
): Generator<PlannedFault, never> {
  const random = new Random(seed);
  for (;;) {
    const left = [...kinds];
    while (left.length > 0) {
      const [kind] = left.splice(random.whole(0, left.length - 1), 1);
      const calmMs = random.whole(leastCalmMs, mostCalmMs);
      if (kind === undefined) continue;
      const fault = kind.draw(random, fleet);
      const isDouble = fault.durationMs > 0 && random.chance(0.2);
      yield { calmMs, fault: isDouble ? withProcessFault(fault, random, fleet) : fault };
    }
  }
}

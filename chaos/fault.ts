import type { Random } from "../sim/random.ts";
import type { ChaosProcess } from "./chaos-process.ts";

/** Something that goes wrong for a while. */
export interface Fault {
  /** As in `--only`. */
  readonly name: string;
  /** What exactly was drawn. */
  readonly detail: string;
  readonly durationMs: number;
  /** The processes that cannot reach the store while others can. */
  readonly separated: number;
  /** The end of the fault brings the store back, so that the fleet must reach full speed again in time. */
  readonly returnsStore: boolean;
  begin(): Promise<void>;
  /** Ends the fault. When it resolves, the store can be used again. */
  end(): Promise<void>;
  /** Brings back what the next fault needs, after the recovery was measured. */
  repair?(): Promise<void>;
}

/** A kind of fault, from which faults are drawn. */
export interface FaultKind {
  readonly name: string;
  draw(random: Random, fleet: readonly ChaosProcess[]): Fault;
}

/** A store that can fail in several ways. */
export interface FaultyStore {
  readonly url: string;
  /** The ports of its servers; empty for a file. */
  readonly ports: readonly number[];
  readonly faults: readonly FaultKind[];
  /** Kinds of faults that cannot be made on this machine, with the reason. */
  readonly missing: readonly string[];
  close(): Promise<void>;
}

/** A kind of fault without a choice but its duration. */
export function simpleFault(
  name: string,
  [shortestMs, longestMs]: readonly [number, number],
  begin: () => Promise<void>,
  end: () => Promise<void>,
): FaultKind {
  return {
    name,
    draw: random => {
      const durationMs = random.whole(shortestMs, longestMs);
      return { name, detail: "", durationMs, separated: 0, returnsStore: true, begin, end };
    },
  };
}

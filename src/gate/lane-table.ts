import type { Role } from "../policy/roles.ts";
import type { Lane } from "./budget.ts";

/** How many old lanes are looked at for each new one: enough to forget faster than hosts can be met. */
const LOOKS_PER_NEW_LANE = 2;

/**
 * The lanes of a process, by role and name.
 * A crawler meets millions of hosts once. Each new lane pays for a look at two old ones, and those whose state equals
 * a fresh one are forgotten (law L11): no timer, no pause, and no more lanes than twice what is in use.
 */
export class LaneTable {
  readonly #lanes: Readonly<Record<Role, Map<string, Lane>>> = {
    metadata: new Map(),
    landing: new Map(),
    artifact: new Map(),
  };
  readonly #isForgettable: (lane: Lane) => boolean;
  #hand: Iterator<Lane> | undefined;

  constructor(isForgettable: (lane: Lane) => boolean) {
    this.#isForgettable = isForgettable;
  }

  get(role: Role, name: string): Lane | undefined {
    return this.#lanes[role].get(name);
  }

  add(lane: Lane): void {
    for (let looks = 0; looks < LOOKS_PER_NEW_LANE; looks += 1) this.#look();
    this.#lanes[lane.role].set(lane.name, lane);
  }

  get size(): number {
    const { metadata, landing, artifact } = this.#lanes;
    return metadata.size + landing.size + artifact.size;
  }

  *[Symbol.iterator](): IterableIterator<Lane> {
    for (const lanes of Object.values(this.#lanes)) yield* lanes.values();
  }

  #look(): void {
    this.#hand ??= this[Symbol.iterator]();
    const { value, done } = this.#hand.next();
    if (done) this.#hand = undefined;
    else if (this.#isForgettable(value)) this.#lanes[value.role].delete(value.name);
  }
}

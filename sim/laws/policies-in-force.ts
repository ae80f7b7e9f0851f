import type { SimFact } from "../facts.ts";
import type { Plan } from "../plan.ts";
import { firstVersion, type PolicyVersion } from "../policy.ts";

/** The policy of each process. While a process reloads, the looser one of the old and the new policy. */
export class PoliciesInForce {
  readonly #first: PolicyVersion;
  readonly #versions = new Map<number, PolicyVersion>();
  readonly #reloadedUs = new Map<number, number>();

  constructor(plan: Plan) {
    this.#first = firstVersion(plan);
  }

  /** Call it with each fact before the law checks it. */
  record(fact: SimFact): void {
    if (fact.kind !== "reloaded") return;
    const { process, factor, hasTotals, isPartitioned, isDone, atUs } = fact;
    const old = this.of(process);
    const looser = {
      factor: Math.max(factor, old.factor),
      hasTotals: hasTotals && old.hasTotals,
      isPartitioned: isPartitioned || old.isPartitioned,
    };
    this.#versions.set(process, isDone ? { factor, hasTotals, isPartitioned } : looser);
    this.#reloadedUs.set(process, atUs);
  }

  of(process: number): PolicyVersion {
    return this.#versions.get(process) ?? this.#first;
  }

  /** When the process last reloaded its policy; undefined if it has not. */
  reloadedUs(process: number): number | undefined {
    return this.#reloadedUs.get(process);
  }
}

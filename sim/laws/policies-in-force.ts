import type { SimFact } from "../facts.ts";
import type { Plan } from "../plan.ts";
import { firstVersion, type PolicyVersion } from "../policy.ts";

/** The policy of each process. While a process reloads, the looser one of the old and the new policy. */
export class PoliciesInForce {
  readonly #first: PolicyVersion;
  readonly #jitterUs: number;
  readonly #versions = new Map<number, PolicyVersion>();
  readonly #strictest = new Map<number, PolicyVersion>();
  /** The policies that were replaced, and when. */
  readonly #former = new Map<number, { readonly untilUs: number; readonly version: PolicyVersion }[]>();
  readonly #reloadedUs = new Map<number, number>();

  constructor(plan: Plan) {
    this.#first = firstVersion(plan);
    this.#jitterUs = plan.breakers.jitterMs * 1000 + 1000;
  }

  /** Call it with each fact before the law checks it. */
  record(fact: SimFact): void {
    if (fact.kind !== "reloaded") return;
    const { process, factor, hasTotals, isPartitioned, isDone, atUs } = fact;
    const old = this.of(process);
    const version = { factor, hasTotals, isPartitioned };
    this.#versions.set(process, isDone ? version : looser(version, old));
    this.#strictest.set(process, isDone ? version : stricter(version, old));
    this.#former.set(process, [...(this.#former.get(process) ?? []), { untilUs: atUs, version: old }]);
    this.#reloadedUs.set(process, atUs);
  }

  /** The policy that a request was granted under, which is sent now: a trial call waits for its jitter in between. */
  atGrant(process: number, nowUs: number): PolicyVersion {
    const recent = (this.#former.get(process) ?? []).filter(({ untilUs }) => untilUs >= nowUs - this.#jitterUs);
    return recent.reduce((loosest, { version }) => looser(loosest, version), this.of(process));
  }

  of(process: number): PolicyVersion {
    return this.#versions.get(process) ?? this.#first;
  }

  /** As `of`; while the process reloads, the stricter one of the old and the new policy. */
  strictestOf(process: number): PolicyVersion {
    return this.#strictest.get(process) ?? this.#first;
  }

  /** When the process last reloaded its policy; undefined if it has not. */
  reloadedUs(process: number): number | undefined {
    return this.#reloadedUs.get(process);
  }
}

function looser(a: PolicyVersion, b: PolicyVersion): PolicyVersion {
  return {
    factor: Math.max(a.factor, b.factor),
    hasTotals: a.hasTotals && b.hasTotals,
    isPartitioned: a.isPartitioned || b.isPartitioned,
  };
}

function stricter(a: PolicyVersion, b: PolicyVersion): PolicyVersion {
  return {
    factor: Math.min(a.factor, b.factor),
    hasTotals: a.hasTotals || b.hasTotals,
    isPartitioned: a.isPartitioned && b.isPartitioned,
  };
}

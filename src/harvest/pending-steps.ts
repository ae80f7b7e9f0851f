import { type PendingStep, resolverNameOf, type WaitReason } from "./step.ts";

/** The steps of one work that have not been started. */
export class PendingSteps {
  #steps: PendingStep[] = [];

  get all(): readonly PendingStep[] {
    return this.#steps;
  }

  add(pending: PendingStep): void {
    this.#steps.push(pending);
  }

  /** Adds a step before all others of its rank. */
  addFirst(pending: PendingStep): void {
    this.#steps.unshift(pending);
  }

  remove(pending: PendingStep): void {
    this.#steps.splice(this.#steps.indexOf(pending), 1);
  }

  /** Removes the queries of a resolver. True if there were any. */
  removeQueries(resolver: string): boolean {
    const kept = this.#steps.filter(({ step }) => step.kind !== "ask" || resolverNameOf(step) !== resolver);
    const hasRemoved = kept.length < this.#steps.length;
    this.#steps = kept;
    return hasRemoved;
  }

  /** Removes the steps for which the predicate is false. It gets the other steps too. */
  keep(isNeeded: (pending: PendingStep, others: readonly PendingStep[]) => boolean): void {
    for (const pending of [...this.#steps]) {
      const others = this.#steps.filter(each => each !== pending);
      if (!isNeeded(pending, others)) this.#steps = others;
    }
  }

  /** Removes the steps that would request a URL once more, as a file or as a page. */
  removeUrl(url: string): void {
    this.#steps = this.#steps.filter(
      ({ step }) => step.url !== url || (step.kind === "ask" && step.request.role !== "landing"),
    );
  }

  /** The first step of the lowest rank among those that may start now. */
  best(nowUs: number): PendingStep | undefined {
    let best: PendingStep | undefined;
    for (const pending of this.#steps) {
      if (pending.notBeforeUs <= nowUs && (best === undefined || pending.rank < best.rank)) best = pending;
    }
    return best;
  }

  /**
   * The step that may start first, now or later.
   * @param waitsFor only steps that wait for this. @default all steps
   */
  soonest(waitsFor?: WaitReason): PendingStep | undefined {
    let soonest: PendingStep | undefined;
    for (const pending of this.#steps) {
      if (waitsFor !== undefined && pending.waitsFor !== waitsFor) continue;
      if (soonest === undefined || pending.notBeforeUs < soonest.notBeforeUs) soonest = pending;
    }
    return soonest;
  }

  /** Whether every step waits for an open circuit or a spent quota. */
  get areAllBlocked(): boolean {
    return this.#steps.every(({ waitsFor }) => waitsFor !== undefined);
  }

  /** The messages of what the steps wait for, each once. */
  get blockers(): readonly string[] {
    return [...new Set(this.#steps.map(({ waitMessage }) => waitMessage).filter(message => message !== undefined))];
  }
}

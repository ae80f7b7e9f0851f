/** The events of one sink between two flushes. */
class EventGroup {
  /** Events that the sink has not confirmed as written. */
  unconfirmed = 0;
  /** Promises of `take` that are not settled. */
  #pending = 0;
  #isComplete = false;
  readonly #settled = Promise.withResolvers<void>();

  beginPending(): void {
    this.unconfirmed += 1;
    this.#pending += 1;
  }

  endPending(): void {
    this.unconfirmed -= 1;
    this.#pending -= 1;
    this.#resolveIfSettled();
  }

  /** No event follows. Resolves when the promises of all events are settled. */
  complete(): Promise<void> {
    this.#isComplete = true;
    this.#resolveIfSettled();
    return this.#settled.promise;
  }

  #resolveIfSettled(): void {
    if (this.#isComplete && this.#pending === 0) this.#settled.resolve();
  }
}

/**
 * The events that a sink has taken and not confirmed as written. A promise of `take` confirms its event when it settles,
 * and a flush that succeeds confirms all events before it. Events are counted in groups, so that a sink that never settles
 * its promises costs no memory.
 */
export class UnconfirmedEvents {
  /** Groups that running flushes wait for, the oldest first. */
  readonly #flushing = new Set<EventGroup>();
  /** Flushes that have not ended. */
  #running = 0;
  #current = new EventGroup();

  get count(): number {
    return [...this.#flushing].reduce((sum, { unconfirmed }) => sum + unconfirmed, this.#current.unconfirmed);
  }

  /** The sink has taken an event, and has not returned a promise. */
  add(): void {
    this.#current.unconfirmed += 1;
  }

  /** The sink has taken an event, and has returned a promise. */
  addPending(taken: PromiseLike<unknown>, onRejected: (error: unknown) => void): void {
    const group = this.#current;
    group.beginPending();
    let isPending = true;
    // Promises of other libraries may call back more than once.
    const end = () => {
      if (isPending) group.endPending();
      isPending = false;
    };
    taken.then(end, error => {
      end();
      onRejected(error);
    });
  }

  /**
   * Waits for a flush and for the promises of the events before it. A flush that succeeds confirms these events; without
   * one only their promises do.
   */
  async confirm(flush: (() => Promise<unknown> | undefined) | undefined): Promise<void> {
    this.#flushing.add(this.#current);
    this.#current = new EventGroup();
    this.#running += 1;
    const groups = [...this.#flushing];
    const [flushed] = await Promise.allSettled([
      (async () => flush?.())(),
      Promise.all(groups.map(group => group.complete())),
    ]);
    if (flush !== undefined && flushed.status === "fulfilled") for (const group of groups) this.#flushing.delete(group);
    this.#running -= 1;
    if (this.#running === 0) this.#joinGroups();
    if (flushed.status === "rejected") throw flushed.reason;
  }

  /** Adds the events that no flush has confirmed to the current group, so that the next flush can confirm them. */
  #joinGroups(): void {
    this.#current.unconfirmed = this.count;
    this.#flushing.clear();
  }
}

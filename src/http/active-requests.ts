/** Something that lasts and can be ended early. It has its neighbours' places in it: see `UnderWay`. */
export interface ActiveRequest {
  abort(reason: unknown): void;
  previousActive: ActiveRequest | undefined;
  nextActive: ActiveRequest | undefined;
}

/**
 * Everything that must come to an end before a hub is closed: a list that goes through its members, because a set would
 * cost each call as much as its way through the breakers.
 */
export class ActiveRequests {
  #first: ActiveRequest | undefined;
  #size = 0;
  #emptyWaiters: (() => void)[] = [];

  get size(): number {
    return this.#size;
  }

  /** Once for each. */
  add(one: ActiveRequest): void {
    one.nextActive = this.#first;
    if (this.#first !== undefined) this.#first.previousActive = one;
    this.#first = one;
    this.#size += 1;
  }

  /** Only what was added, and once. */
  delete(one: ActiveRequest): void {
    const { previousActive, nextActive } = one;
    if (previousActive === undefined) this.#first = nextActive;
    else previousActive.nextActive = nextActive;
    if (nextActive !== undefined) nextActive.previousActive = previousActive;
    one.previousActive = undefined;
    one.nextActive = undefined;
    this.#size -= 1;
    if (this.#size > 0) return;
    const waiting = this.#emptyWaiters;
    this.#emptyWaiters = [];
    for (const resolve of waiting) resolve();
  }

  /** Resolves when nothing is left. */
  whenEmpty(): Promise<void> {
    if (this.#size === 0) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#emptyWaiters.push(resolve);
    return promise;
  }

  abortAll(reason: unknown): void {
    const all: ActiveRequest[] = [];
    for (let one = this.#first; one !== undefined; one = one.nextActive) all.push(one);
    for (const one of all) one.abort(reason);
  }
}

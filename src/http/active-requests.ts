/** A call or a coalesced request that has not ended. The two links belong to the list in `ActiveRequests`. */
export interface ActiveRequest {
  /** False for a coalesced request: the calls that wait for it are counted themselves. */
  readonly isCall: boolean;
  abort(reason: unknown): void;
  previousActive: ActiveRequest | undefined;
  nextActive: ActiveRequest | undefined;
}

/**
 * The requests that must end before the hub is closed. A linked list through its members: a Set would cost each call as
 * much time as the breakers do.
 */
export class ActiveRequests {
  #first: ActiveRequest | undefined;
  #size = 0;
  #calls = 0;
  #emptyWaiters: (() => void)[] = [];

  get size(): number {
    return this.#size;
  }

  /** The calls among them. */
  get calls(): number {
    return this.#calls;
  }

  /** Must be called once for each request. */
  add(request: ActiveRequest): void {
    request.nextActive = this.#first;
    if (this.#first !== undefined) this.#first.previousActive = request;
    this.#first = request;
    this.#size += 1;
    if (request.isCall) this.#calls += 1;
  }

  /** Must be called once, after `add`. */
  delete(request: ActiveRequest): void {
    const { previousActive, nextActive } = request;
    if (previousActive === undefined) this.#first = nextActive;
    else previousActive.nextActive = nextActive;
    if (nextActive !== undefined) nextActive.previousActive = previousActive;
    request.previousActive = undefined;
    request.nextActive = undefined;
    this.#size -= 1;
    if (request.isCall) this.#calls -= 1;
    if (this.#size > 0) return;
    const waiting = this.#emptyWaiters;
    this.#emptyWaiters = [];
    for (const resolve of waiting) resolve();
  }

  /** Resolves when no request is active. */
  whenEmpty(): Promise<void> {
    if (this.#size === 0) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#emptyWaiters.push(resolve);
    return promise;
  }

  abortAll(reason: unknown): void {
    const all: ActiveRequest[] = [];
    for (let request = this.#first; request !== undefined; request = request.nextActive) all.push(request);
    for (const request of all) request.abort(reason);
  }
}

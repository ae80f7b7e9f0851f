/** One unit for one of several callers, through a store. */
import type { BudgetStore, LeaseReply, LeaseRequest, Settlement, StoreClaim } from "../../src/stores/store.ts";
import { systemTime } from "../../src/time/system-time.ts";

/** Resolves when the caller has its unit. */
export type Acquire = (caller: number) => Promise<void>;

/** As much as a process asks for at once: what `gate/sharing.ts` has. */
const MOST_UNITS = 64;
const SECOND_US = 1_000_000;

/** Two windows that a bench does not fill. */
export function wideClaim(key: string): StoreClaim {
  return {
    key,
    windows: [
      { limit: 5_000_000, windowUs: SECOND_US, spanUs: SECOND_US },
      { limit: 100_000_000, windowUs: 60 * SECOND_US, spanUs: 60 * SECOND_US },
    ],
    spacingUs: 0,
  };
}

/** The key that a caller wants next: always its own, or each in turn where there are fewer callers than keys. */
export function nextKey<Key>(keys: readonly Key[], callers: number): (caller: number) => Key {
  let made = 0;
  return caller => {
    made += 1;
    return keys[(callers < keys.length ? made : caller) % keys.length] as Key;
  };
}

/** Every caller has an exchange of its own, and says with it that what it got before was written. */
export function acquireEach(store: BudgetStore, claims: readonly StoreClaim[], callers: number): Acquire {
  const next = nextKey(claims.map(one), callers);
  const written: Settlement[] = [];
  return async caller => {
    const leaseRequest = next(caller);
    const last = written[caller];
    const [answer] = await store.exchange(last === undefined ? [] : [last], [leaseRequest]);
    checkGiven(answer);
    written[caller] = writtenOf(leaseRequest, 1);
  };
}

/** One exchange at a time asks for all who wait, as the gate does. */
export function acquireTogether(store: BudgetStore, claims: readonly StoreClaim[], callers: number): Acquire {
  const queues = claims.map(claim => new KeyQueue(claim));
  const next = nextKey(queues, callers);
  let isBusy = false;
  const exchange = async () => {
    const settlements = queues.flatMap(queue => queue.settlement() ?? []);
    const asking = queues.filter(({ waiting }) => waiting.length > 0);
    try {
      const answers = await store.exchange(
        settlements,
        asking.map(queue => queue.leaseRequest()),
      );
      for (const [index, queue] of asking.entries()) queue.applyReply(answers[index]);
    } catch (error) {
      for (const queue of asking) queue.fail(error);
    }
    isBusy = queues.some(({ waiting }) => waiting.length > 0);
    if (isBusy) process.nextTick(exchange);
  };
  return caller => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    next(caller).waiting.push({ resolve, reject });
    if (!isBusy) {
      isBusy = true;
      // When all who were woken have come back.
      process.nextTick(exchange);
    }
    return promise;
  };
}

/** No store at all: what the machine itself does to the event loop of so many busy processes. */
export function acquireNothing(): Acquire {
  return async () => {
    const endUs = systemTime.monotonicUs() + 50;
    while (systemTime.monotonicUs() < endUs);
    await new Promise(resolve => setImmediate(resolve));
  };
}

/** One after the other, each in a call of its own and so with a stamp of its own. */
export async function writeUnits(store: BudgetStore, claim: StoreClaim, amounts: readonly number[]): Promise<void> {
  for (const most of amounts) {
    const leaseRequest = { claims: [claim], least: most, most };
    const [answer] = await store.exchange([], [leaseRequest]);
    checkGiven(answer);
    await store.exchange([writtenOf(leaseRequest, most)], []);
  }
}

export function one(claim: StoreClaim): LeaseRequest {
  return { claims: [claim], least: 1, most: 1 };
}

function writtenOf({ claims }: LeaseRequest, written: number): Settlement {
  return { keys: claims.map(({ key }) => key), written, returned: 0 };
}

function checkGiven(answer: LeaseReply | undefined): asserts answer is Extract<LeaseReply, { kind: "granted" }> {
  if (answer?.kind !== "granted") throw new TypeError(`a unit was due, and not ${JSON.stringify(answer)}`);
}

class KeyQueue {
  readonly #claim: StoreClaim;
  readonly waiting: { readonly resolve: () => void; readonly reject: (error: unknown) => void }[] = [];
  #written = 0;

  constructor(claim: StoreClaim) {
    this.#claim = claim;
  }

  leaseRequest(): LeaseRequest {
    return { claims: [this.#claim], least: 1, most: Math.min(this.waiting.length, MOST_UNITS) };
  }

  settlement(): Settlement | undefined {
    const written = this.#written;
    this.#written = 0;
    return written === 0 ? undefined : { keys: [this.#claim.key], written, returned: 0 };
  }

  /** Everybody sends at once what he was waiting for. */
  applyReply(answer: LeaseReply | undefined): void {
    checkGiven(answer);
    this.#written += answer.units;
    for (const { resolve } of this.waiting.splice(0, answer.units)) resolve();
  }

  fail(error: unknown): void {
    for (const { reject } of this.waiting.splice(0)) reject(error);
  }
}

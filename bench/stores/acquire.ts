/** One unit for one of several callers, through a store. */
import type { BudgetStore, LeaseReply, LeaseRequest, Settlement, StoreClaim } from "../../src/stores/store.ts";
import { systemTime } from "../../src/time/system-time.ts";

/** Resolves when the caller has its unit. */
export type Acquire = (caller: number) => Promise<void>;

/** The most units that a process requests at once: the value of `sharing/unit-leases.ts`. */
const MOST_UNITS = 64;
const SECOND_US = 1_000_000;

/** The rates of `wideClaim`. */
export const WIDE_RATES = "5000000/SECOND+100000000/MINUTE";

/** Two windows that a benchmark does not fill. */
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

/** The next key of a caller: always its own, or each in turn if there are fewer callers than keys. */
export function nextKey<Key>(keys: readonly Key[], callers: number): (caller: number) => Key {
  let made = 0;
  return caller => {
    made += 1;
    return keys[(callers < keys.length ? made : caller) % keys.length] as Key;
  };
}

/** Each caller makes its own exchange, which also settles the unit that it got before. */
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

/** One exchange at a time requests units for all waiting callers, as the gate does. */
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
      // After all callers that got a unit have called again.
      process.nextTick(exchange);
    }
    return promise;
  };
}

/** No store: shows how the machine itself delays the event loops of that many busy processes. */
export function acquireNothing(): Acquire {
  return async () => {
    const endUs = systemTime.monotonicUs() + 50;
    while (systemTime.monotonicUs() < endUs);
    await new Promise(resolve => setImmediate(resolve));
  };
}

/** One unit per exchange, so that each has its own stamp. */
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

  /** All callers send at once. */
  applyReply(answer: LeaseReply | undefined): void {
    checkGiven(answer);
    this.#written += answer.units;
    for (const { resolve } of this.waiting.splice(0, answer.units)) resolve();
  }

  fail(error: unknown): void {
    for (const { reject } of this.waiting.splice(0)) reject(error);
  }
}

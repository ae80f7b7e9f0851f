/** What a store does in one exchange, wherever its budgets lie. Pure but for the budgets that it is handed. */
import type { SharedBudget } from "../core/limits/shared-budget.ts";
import type { Answer, Ask, Settlement, StoreClaim } from "./store.ts";

/** The budgets during one exchange. */
export interface Budgets {
  /** Undefined when nobody has used it, or nothing of that matters any more. */
  find(key: string): SharedBudget | undefined;
  /** The one there is, or a new one. */
  open(key: string): SharedBudget;
}

/** Who speaks, and when. */
export interface Contact {
  readonly process: string;
  readonly nowUs: number;
  readonly leaseUs: number;
}

export function settleAll(budgets: Budgets, settlements: Iterable<Settlement>, contact: Contact): void {
  const { process, nowUs, leaseUs } = contact;
  // Added up first: of one that has less out than it says, because its lease was over, what was written comes first.
  const sums = new Map<string, { written: number; returned: number }>();
  for (const { keys, written, returned } of settlements) {
    for (const key of keys) {
      const sum = sums.get(key) ?? { written: 0, returned: 0 };
      sums.set(key, { written: sum.written + written, returned: sum.returned + returned });
    }
  }
  for (const [key, { written, returned }] of sums) {
    const budget = budgets.find(key);
    budget?.settle(process, written, returned, nowUs);
    budget?.renew(process, nowUs + leaseUs);
  }
}

export function answerAll(budgets: Budgets, asks: readonly Ask[], contact: Contact): readonly Answer[] {
  const hunger = new Hunger();
  const answers = asks.map(ask => answer(budgets, ask, contact, hunger));
  hunger.note(budgets, contact);
  return answers;
}

function answer(budgets: Budgets, { claims, least, most }: Ask, contact: Contact, hunger: Hunger): Answer {
  const { process, nowUs, leaseUs } = contact;
  const isStricter = claims.map(claim => joined(budgets, claim, contact)).includes(true);
  const rooms = claims.map(({ key }) => budgets.open(key).room(process, { least, most }, nowUs));
  const units = Math.min(most, ...rooms);
  let binding: { key: string; freeUs: number } = { key: claims[0]?.key ?? "", freeUs: nowUs };
  for (const [index, { key }] of claims.entries()) {
    const budget = budgets.open(key);
    const isBinding = units < most && rooms[index] === units;
    const freeUs = isBinding ? budget.earliestUs(process, least, nowUs) : nowUs;
    if (isBinding && freeUs > binding.freeUs) binding = { key, freeUs };
    hunger.add(key, isBinding, Math.min(freeUs, nowUs + leaseUs));
    if (units > 0) budget.reserve(process, units);
  }
  if (units > 0) return { kind: "given", units, isStricter };
  return { kind: "wait", waitMs: Math.max(1, binding.freeUs - nowUs) / 1000, key: binding.key, isStricter };
}

/** Takes part in a budget; true when somebody else's limits are stricter. */
function joined(budgets: Budgets, claim: StoreClaim, { process, nowUs, leaseUs }: Contact): boolean {
  const budget = budgets.open(claim.key);
  budget.join(process, claim, nowUs + leaseUs, nowUs);
  return budget.isStricterThan(claim);
}

/**
 * Which budgets a process wanted more of, over all it asked. A budget that had enough is not one of them: its others
 * would be kept from what this process cannot use, because the lane before it is full.
 */
class Hunger {
  readonly #backUs = new Map<string, number | undefined>();

  add(key: string, isHungry: boolean, backUs: number): void {
    const knownUs = this.#backUs.get(key);
    if (!isHungry) this.#backUs.set(key, knownUs);
    else this.#backUs.set(key, Math.max(backUs, knownUs ?? backUs));
  }

  note(budgets: Budgets, { process, nowUs }: Contact): void {
    for (const [key, backUs] of this.#backUs)
      budgets.open(key).noteHunger(process, backUs !== undefined, nowUs, backUs ?? nowUs);
  }
}

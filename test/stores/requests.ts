/** Requests to a store, as tests make them. */
import assert from "node:assert/strict";
import type { BudgetStore, LeaseReply, LeaseRequest } from "../../src/stores/store.ts";

/** Asks for one unit of one budget. */
export function one(key: string, limit: number, windowMs = 60_000): LeaseRequest {
  const windows = [{ limit, windowUs: windowMs * 1000, spanUs: windowMs * 1000 }];
  return { claims: [{ key, windows, spacingUs: 0 }], least: 1, most: 1 };
}

export async function ask(store: BudgetStore, wanted: LeaseRequest): Promise<LeaseReply> {
  const [answer] = await store.exchange([], [wanted]);
  assert.ok(answer !== undefined);
  return answer;
}

export async function kindOf(store: BudgetStore, wanted: LeaseRequest): Promise<string> {
  return (await ask(store, wanted)).kind;
}

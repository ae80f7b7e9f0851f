import assert from "node:assert/strict";
import { test } from "node:test";
import { type BudgetMember, emptyTables } from "./budget-tables.ts";
import { TurnQueue } from "./turn-queue.ts";

const SECOND = 1_000_000;

function queueOf(...names: readonly string[]) {
  const tables = emptyTables();
  const queue = new TurnQueue(tables);
  const members = names.map((name): BudgetMember => {
    const member: BudgetMember = { claim: "", pending: 0, leaseUs: 0, entry: 0, entryUs: 0 };
    tables.members.set(name, member);
    return member;
  });
  const join = (index: number, units: number, dueUs: number) =>
    queue.join(names[index] ?? "", members[index] as BudgetMember, units, dueUs);
  const ahead = () => members.map(member => queue.unitsBefore(member));
  return { tables, queue, members, join, ahead };
}

test("a process has the units of those that joined before it ahead of it, and a new one all units", () => {
  const { join, ahead } = queueOf("a", "b", "c", "new");
  join(0, 2, SECOND);
  join(1, 1, SECOND);
  join(2, 3, SECOND);
  assert.deepEqual(ahead(), [0, 2, 3, 6]);
});

test("a process that asks again before its turn keeps its place", () => {
  const { queue, members, join, ahead } = queueOf("a", "b");
  join(0, 1, SECOND);
  join(1, 1, SECOND);
  join(0, 1, 2 * SECOND);
  assert.deepEqual(ahead(), [0, 1]);
  assert.equal(queue.othersWaiting(members[0] as BudgetMember), 1);
});

test("after the turn of the first, the next one is first", () => {
  const { tables, queue, members, join, ahead } = queueOf("a", "b", "c");
  for (const index of [0, 1, 2]) join(index, 1, SECOND);
  queue.leave(members[0] as BudgetMember, 0);
  assert.deepEqual(ahead(), [2, 0, 1]);
  queue.leave(members[1] as BudgetMember, 0);
  assert.equal(queue.unitsBefore(members[2] as BudgetMember), 0);
  queue.leave(members[2] as BudgetMember, 0);
  assert.deepEqual(ahead(), [0, 0, 0]);
  assert.equal((tables.turns as Map<number, string>).size, 0);
});

test("a turn that ends behind the first one leaves less before those that are not first", () => {
  const { queue, members, join, ahead } = queueOf("a", "b", "c", "d", "new");
  for (const index of [0, 1, 2, 3]) join(index, 2, SECOND);
  queue.leave(members[2] as BudgetMember, 0);
  assert.deepEqual(ahead(), [0, 0, 6, 4, 6]);
  queue.leave(members[0] as BudgetMember, 0);
  assert.deepEqual(ahead(), [4, 0, 4, 2, 4], "the second one is first now");
});

test("a process that is one second late loses its turn", () => {
  const { queue, join, ahead } = queueOf("a", "b");
  join(0, 1, SECOND);
  join(1, 1, 9 * SECOND);
  queue.prune(2 * SECOND - 1);
  assert.deepEqual(ahead(), [0, 1]);
  queue.prune(2 * SECOND);
  assert.deepEqual(ahead(), [1, 0]);
});

test("many processes that never come are dropped a few at a time", () => {
  const names = Array.from({ length: 100 }, (_, index) => `p${index}`);
  const { queue, members, join } = queueOf(...names, "last");
  for (const index of names.keys()) join(index, 1, SECOND);
  join(100, 1, 100 * SECOND);
  const last = members[100] as BudgetMember;
  let steps = 0;
  for (; queue.unitsBefore(last) > 0; steps += 1) queue.prune(10 * SECOND);
  assert.ok(steps > 1 && steps <= 8, String(steps));
});

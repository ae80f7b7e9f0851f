import assert from "node:assert/strict";
import { test } from "node:test";
import { type BudgetMember, CLEANED_AT_ONCE, emptyTables } from "./budget-tables.ts";
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

const MS = 1000;
const TIMEOUT_US = 1000 * MS;

/** A queue in which these processes wait for 2 units each and are due 1 ms after each other. */
function waiting(count: number) {
  const tables = emptyTables();
  const queue = new TurnQueue(tables);
  const members = Array.from({ length: count }, (_, index) => {
    const member: BudgetMember = { claim: "", pending: 0, leaseUs: 0, entry: 0, entryUs: 0 };
    tables.members.set(`${index}`, member);
    queue.join(`${index}`, member, 2, (index + 1) * MS);
    return member;
  });
  return { tables, queue, members };
}

test("the state of a queue names its first turn, the promised units and the number of waiting processes", () => {
  assert.deepEqual(waiting(0).queue.dump(), { head: 1, tail: 1, headStart: 0, end: 0, headDueUs: -1, waiting: 0 });
  const { tables, queue, members } = waiting(3);
  const state = { head: 1, tail: 4, headStart: 0, end: 6, headDueUs: MS, waiting: 3 };
  assert.deepEqual(queue.dump(), state);
  assert.deepEqual(new TurnQueue(tables, state).dump(), state);
  const [first, second] = members as [BudgetMember, BudgetMember, BudgetMember];
  queue.leave(first, 0);
  const left = { ...state, head: 2, headStart: 2, headDueUs: 2 * MS, waiting: 2 };
  assert.deepEqual([queue.dump(), tables.turns.get(1)], [left, undefined]);
  queue.leave(first, 0);
  assert.deepEqual(queue.dump(), left);
  assert.deepEqual([second.turn?.start, queue.othersWaiting(second), queue.othersWaiting(first)], [2, 1, 2]);
});

test("the last process that leaves leaves an empty queue", () => {
  const { queue, members } = waiting(2);
  for (const member of members.toReversed()) queue.leave(member, 0);
  const empty = { head: 3, tail: 3, headStart: 4, end: 4, headDueUs: -TIMEOUT_US, waiting: 0 };
  assert.deepEqual(queue.dump(), empty);
});

test("a process that asks again is due later, and keeps its turn", () => {
  const { queue, members } = waiting(2);
  const [first, second] = members as [BudgetMember, BudgetMember];
  const before = queue.dump();
  queue.join("1", second, 2, 50 * MS);
  assert.deepEqual([queue.dump(), second.turn], [before, { number: 2, start: 2, dueUs: 50 * MS }]);
  queue.join("0", first, 2, 40 * MS);
  assert.deepEqual([queue.dump().headDueUs, first.turn?.dueUs], [40 * MS, 40 * MS]);
  assert.equal(TurnQueue.keptUntilUs(first), 40 * MS + TIMEOUT_US);
  first.turn = undefined;
  assert.equal(TurnQueue.keptUntilUs(first), -1);
});

test("a turn is lost a second after its process was due, of a bounded number of processes at once", () => {
  const { queue, members } = waiting(2);
  queue.prune(MS + TIMEOUT_US - 1);
  assert.equal(queue.dump().head, 1);
  queue.prune(MS + TIMEOUT_US);
  assert.deepEqual([members[0]?.turn, queue.dump().head, queue.dump().waiting], [undefined, 2, 1]);
  const late = waiting(CLEANED_AT_ONCE + 2).queue;
  late.prune(3600 * TIMEOUT_US);
  const { head, headDueUs, headStart, waiting: others } = late.dump();
  assert.deepEqual([head, headDueUs, headStart, others], [CLEANED_AT_ONCE + 1, -TIMEOUT_US, 0, 2]);
  late.prune(3600 * TIMEOUT_US);
  assert.deepEqual([late.dump().head, late.dump().waiting], [CLEANED_AT_ONCE + 3, 0]);
});

test("turns that have ended behind the first one count as turns before a process", () => {
  const { queue, members } = waiting(4);
  const [, second, third, fourth] = members as [BudgetMember, BudgetMember, BudgetMember, BudgetMember];
  assert.deepEqual(
    [second, third, fourth].map(member => queue.unitsBefore(member)),
    [2, 4, 6],
  );
  queue.leave(second, 0);
  assert.deepEqual(
    [third, fourth].map(member => queue.unitsBefore(member)),
    [2, 4],
  );
  const one = waiting(1);
  assert.equal(one.queue.unitsBefore(one.members[0] as BudgetMember), 0);
});

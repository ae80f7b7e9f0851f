import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Backlog } from "./backlog.ts";
import { hostQueueStatuses } from "./host-queue-status.ts";
import { HostQueues } from "./host-queues.ts";

test("hosts take turns, regardless of the order of tasks", () => {
  const queues = new HostQueues<string>();
  for (const task of ["a1", "a2", "a3", "b1", "b2", "c1"]) queues.add(task, task.slice(0, 1), 0, 0);
  const order = Array.from({ length: 6 }, () => queues.take(10)?.task);
  assert.deepEqual(order, ["a1", "b1", "c1", "a2", "b2", "a3"]);
  assert.equal(queues.take(10), undefined);
  assert.equal(queues.size, 0);
});

test("a refused task is taken first at its time, and delays no other host", () => {
  const queues = new HostQueues<string>();
  for (const task of ["a1", "a2", "b1"]) queues.add(task, task.slice(0, 1), 0, 0);
  const first = queues.take(0);
  assert.equal(first?.task, "a1");
  queues.requeue("a1", "a", 500, 0);
  assert.equal(queues.take(0)?.task, "b1");
  assert.equal(queues.take(0), undefined);
  assert.equal(queues.nextUs(), 500);
  assert.equal(queues.take(499), undefined);
  assert.equal(queues.take(500)?.task, "a1");
  // Tasks of this queue are now taken one by one, because the next may be refused too.
  assert.equal(queues.take(500), undefined);
  assert.equal(queues.take(1500)?.task, "a2");
});

test("of several refusals the earliest time counts: the later tasks were to wait for the first one", () => {
  const queues = new HostQueues<string>();
  queues.requeue("a2", "a", 1_024_000, 0);
  queues.requeue("a1", "a", 621_000, 1000);
  queues.requeue("a0", "a", 1000, 1000);
  assert.equal(queues.take(620_999), undefined);
  assert.equal(queues.take(621_000)?.task, "a0");
  queues.requeue("a0", "a", 2_000_000, 621_500);
  assert.equal(queues.nextUs(), 2_000_000, "a later refusal counts, and not the pause after the task was taken");
});

test("a queue without a free slot waits for slotFreed, or until its time", () => {
  const queues = new HostQueues<string>();
  queues.requeueUntilSlot("a1", "a", 250, 0);
  assert.equal(queues.take(249), undefined);
  queues.slotFreed();
  assert.equal(queues.take(100)?.task, "a1");
  queues.requeueUntilSlot("b1", "b", 350, 100);
  assert.equal(queues.nextUs(), 350);
  assert.equal(queues.take(350)?.task, "b1");
});

test("a batch that empties its queue ends the linger, so that the next batch waits as long as the first", () => {
  const queues = new HostQueues<string>();
  queues.linger("a", 100, 2, 0);
  for (const task of ["a1", "a2"]) queues.add(task, "a", 0, 0);
  assert.equal(queues.take(0)?.task, "a1");
  assert.deepEqual(
    queues.takeMore("a", 9, () => true),
    ["a2"],
  );
  queues.linger("a", 150, 2, 50);
  queues.add("a3", "a", 50, 50);
  assert.equal(queues.nextUs(), 150);
  assert.equal(queues.take(149), undefined);
  assert.equal(queues.take(150)?.task, "a3");
});

test("the last wanted tasks of each queue are removed, and those that are not due stay", () => {
  const queues = new HostQueues<string>();
  for (const task of ["a1", "a2", "a3", "b1", "b2"]) queues.add(task, task.slice(0, 1), 0, 0);
  queues.add("a4", "a", 5, 0);
  const taken = queues.takeLast(3, task => task !== "a3");
  assert.deepEqual(
    taken.map(({ task, queue }) => `${task} of ${queue}`),
    ["a1 of a", "a2 of a", "b2 of b"],
  );
  assert.deepEqual(
    queues.takeLast(0, () => true),
    [],
  );
  assert.equal(queues.size, 3);
});

test("slotFreed does not change a queue that waits for a time", () => {
  const queues = new HostQueues<string>();
  queues.requeue("a1", "a", 500, 0);
  queues.slotFreed();
  assert.equal(queues.take(0), undefined);
});

test("slotFreed ends the wait for a slot, and not a longer wait of the same queue for a time", () => {
  const queues = new HostQueues<string>();
  queues.requeue("a1", "a", 60_000, 0);
  queues.requeueUntilSlot("a2", "a", 250, 0);
  queues.slotFreed();
  assert.equal(queues.take(59_999), undefined);
  assert.equal(queues.take(60_000)?.task, "a2");
});

test("works that wait for a later try or a spent quota count as waiting, until the first of them may start", () => {
  const queues = new HostQueues<string>();
  queues.add("a1", "a.example artifact", 9_000_000, 0);
  queues.add("a2", "a.example artifact", 5_000_000, 0);
  queues.add("b1", "b.example landing", 0, 0);
  queues.add("b2", "b.example landing", 7_000_000, 0);
  const backlog = new Backlog();
  backlog.add("b.example landing", 3);
  backlog.add("c.example artifact", 1);
  backlog.block("c.example artifact", 61_000_000, "500/HOUR is spent");
  assert.deepEqual(hostQueueStatuses(queues, new Map([["b.example landing", 1]]), backlog, 1_000_000), [
    { host: "b.example", role: "landing", inFlightRequests: 1, waiting: 5, freeInMs: 0 },
    { host: "a.example", role: "artifact", inFlightRequests: 0, waiting: 2, freeInMs: 4000 },
    { host: "c.example", role: "artifact", inFlightRequests: 0, waiting: 1, freeInMs: 60_000 },
  ]);
});

test("no task is lost, and none is taken before its time", () => {
  const entry = fc.record({ queue: fc.constantFrom("a", "b", "c"), dueUs: fc.integer({ min: 0, max: 50 }) });
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 60 }), entries => {
      const queues = new HostQueues<number>();
      for (const [task, { queue, dueUs }] of entries.entries()) queues.add(task, queue, dueUs, 0);
      const seen: number[] = [];
      for (let nowUs = 0; queues.size > 0; ) {
        const taken = queues.take(nowUs);
        if (taken === undefined) {
          const nextUs = queues.nextUs();
          assert.ok(nextUs !== undefined && nextUs > nowUs);
          nowUs = nextUs;
        } else {
          assert.ok((entries[taken.task]?.dueUs ?? 0) <= nowUs);
          seen.push(taken.task);
        }
      }
      assert.deepEqual(
        seen.toSorted((one, other) => one - other),
        [...entries.keys()],
      );
    }),
  );
});

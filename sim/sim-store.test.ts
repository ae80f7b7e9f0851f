import assert from "node:assert/strict";
import { test } from "node:test";
import { Clock } from "./clock.ts";
import { Machine } from "./machine.ts";
import { ProcessTime } from "./process-time.ts";
import { Random } from "./random.ts";
import { SimStore } from "./sim-store.ts";

const FOREVER_US = 1e12;

function simStore() {
  const clock = new Clock();
  const machine = new Machine(clock);
  const store = new SimStore(clock, machine, { delayMs: 1, jitterMs: 0, whenAway: "share" }, new Random(1));
  const time = new ProcessTime(
    clock,
    machine,
    { originUs: 0, wallOffsetMs: 0, earlyUs: 0, computeUs: 0 },
    new Random(2),
  );
  const member = store.member("process 0", time);
  /** Runs the clock until the exchange has ended. */
  const ended = async <Value>(exchange: Promise<Value>): Promise<Value> => {
    for (let task = clock.next(); task !== undefined; task = clock.next()) task.run(task.dueUs);
    return exchange;
  };
  return { clock, store, member, ended };
}

test("a loss of data restores the older records and runs no step of a process again", async () => {
  const { clock, store, member, ended } = simStore();
  const steps: number[] = [];
  const write = (value: number) =>
    ended(
      member.change<readonly number[], void>("host api.example.org", ({ record = [] }) => {
        steps.push(value);
        return { record: { next: [...record, value], keepUntilUs: FOREVER_US }, result: undefined };
      }),
    );
  await write(1);
  await write(2);
  clock.advance(5_000_000);
  await write(3);
  store.rollBack(1_000_000);
  assert.deepEqual((await ended(member.read("host api.example.org"))).record, [1, 2]);
  await write(4);
  assert.deepEqual((await ended(member.read("host api.example.org"))).record, [1, 2, 4]);
  assert.deepEqual(steps, [1, 2, 3, 4]);
});

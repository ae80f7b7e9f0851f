import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { UnconfirmedEvents } from "./unconfirmed-events.ts";

const step = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ kind: "take" } as const) },
  { weight: 3, arbitrary: fc.constant({ kind: "take later" } as const) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("settle" as const), at: fc.nat(), fails: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("flush" as const), fails: fc.boolean() }) },
);

test("an event is unconfirmed until its promise is settled, or a flush after it and all promises before that have ended", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async steps => {
      const events = new UnconfirmedEvents();
      // The oracle: a list of all events, and of all flushes with the number of events before them.
      const taken: { isConfirmed: boolean; settle?: (fails: boolean) => void }[] = [];
      const flushes: { readonly before: number; readonly fails: boolean; isEnded: boolean }[] = [];
      let rejected = 0;
      let expectedRejected = 0;
      for (const made of steps) {
        if (made.kind === "take") {
          events.add();
          taken.push({ isConfirmed: false });
        } else if (made.kind === "take later") {
          const { promise, resolve, reject } = Promise.withResolvers<void>();
          events.addPending(promise, () => {
            rejected += 1;
          });
          taken.push({ isConfirmed: false, settle: fails => (fails ? reject(new Error("no")) : resolve()) });
        } else if (made.kind === "settle") {
          const pending = taken.filter(({ settle }) => settle !== undefined);
          const one = pending[made.at % Math.max(1, pending.length)];
          if (one === undefined) continue;
          one.settle?.(made.fails);
          one.isConfirmed = true;
          delete one.settle;
          if (made.fails) expectedRejected += 1;
        } else {
          const flush = { before: taken.length, fails: made.fails, isEnded: false };
          flushes.push(flush);
          void events
            .confirm(() => (made.fails ? Promise.reject(new Error("no")) : Promise.resolve()))
            .catch(() => undefined)
            .then(() => {
              flush.isEnded = true;
            });
        }
        await new Promise(resolve => setImmediate(resolve));
        for (const flush of flushes) {
          const before = taken.slice(0, flush.before);
          assert.equal(
            flush.isEnded,
            before.every(({ settle }) => settle === undefined),
          );
          if (flush.isEnded && !flush.fails) for (const one of before) one.isConfirmed = true;
        }
        assert.equal(events.count, taken.filter(({ isConfirmed }) => !isConfirmed).length);
        assert.equal(rejected, expectedRejected);
      }
    }),
    {
      numRuns: 300,
      // A flush that fails must not take the events from one that runs at the same time.
      examples: [
        [
          [
            { kind: "take" },
            { kind: "take later" },
            { kind: "flush", fails: true },
            { kind: "flush", fails: false },
            { kind: "settle", at: 0, fails: false },
          ],
        ],
      ],
    },
  );
});

test("a promise that calls back twice is settled once", async () => {
  const events = new UnconfirmedEvents();
  // biome-ignore lint/suspicious/noThenProperty: a promise of another library
  const twice = { then: (onFulfilled: () => void) => [onFulfilled(), onFulfilled()] } as unknown as PromiseLike<void>;
  events.add();
  events.addPending(twice, () => undefined);
  assert.equal(events.count, 1);
  await events.confirm(undefined);
  assert.equal(events.count, 1);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Ongoing, UnderWay } from "./active-requests.ts";

function ongoing(aborted: unknown[]): Ongoing {
  return { abort: reason => void aborted.push(reason), before: undefined, behind: undefined };
}

test("in whatever order things come and go, those that are left are known", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20), { maxLength: 60 }), turns => {
      const underWay = new UnderWay();
      const left: Ongoing[] = [];
      const aborted: unknown[] = [];
      for (const turn of turns) {
        const one = left[turn];
        if (one === undefined) {
          const next = ongoing(aborted);
          underWay.add(next);
          left.push(next);
        } else {
          underWay.delete(one);
          left.splice(turn, 1);
        }
        assert.equal(underWay.size, left.length);
      }
      underWay.abortAll("enough");
      assert.equal(aborted.length, left.length);
    }),
  );
});

test("who waits for the end hears of it when the last one has gone, and at once when nobody is there", async () => {
  const underWay = new UnderWay();
  await underWay.empty();
  const one = ongoing([]);
  const other = ongoing([]);
  underWay.add(one);
  underWay.add(other);
  let isEmpty = false;
  const empty = underWay.empty().then(() => {
    isEmpty = true;
  });
  underWay.delete(one);
  await Promise.resolve();
  assert.equal(isEmpty, false);
  underWay.delete(other);
  await empty;
  assert.equal(isEmpty, true);
});

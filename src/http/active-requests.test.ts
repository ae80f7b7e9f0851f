import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type ActiveRequest, ActiveRequests } from "./active-requests.ts";

function ongoing(aborted: unknown[]): ActiveRequest {
  return { isCall: true, abort: reason => void aborted.push(reason), previousActive: undefined, nextActive: undefined };
}

test("requests may be added and removed in any order", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20), { maxLength: 60 }), turns => {
      const activeRequests = new ActiveRequests();
      const left: ActiveRequest[] = [];
      const aborted: unknown[] = [];
      for (const turn of turns) {
        const one = left[turn];
        if (one === undefined) {
          const next = ongoing(aborted);
          activeRequests.add(next);
          left.push(next);
        } else {
          activeRequests.delete(one);
          left.splice(turn, 1);
        }
        assert.equal(activeRequests.size, left.length);
      }
      activeRequests.abortAll("enough");
      assert.equal(aborted.length, left.length);
    }),
  );
});

test("whenEmpty resolves when the last request is removed, and at once when there is none", async () => {
  const activeRequests = new ActiveRequests();
  await activeRequests.whenEmpty();
  const one = ongoing([]);
  const other = ongoing([]);
  activeRequests.add(one);
  activeRequests.add(other);
  let isEmpty = false;
  const whenEmpty = activeRequests.whenEmpty().then(() => {
    isEmpty = true;
  });
  activeRequests.delete(one);
  await Promise.resolve();
  assert.equal(isEmpty, false);
  activeRequests.delete(other);
  await whenEmpty;
  assert.equal(isEmpty, true);
});

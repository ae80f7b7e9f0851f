import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Episode, judge, judgeLines } from "./judge.ts";

const PROMISES = { mode: "wait", limit: 4, windowUs: 1000, processes: 4 } as const;

function episode(beganUs: number, endedUs: number, untilUs: number, separated = 0): Episode {
  return { fault: "test", detail: "", separated, returnsStore: true, beganUs, endedUs, untilUs };
}

test("a window over the limit is counted over all stamps and named with its fault", () => {
  const stamps = [100, 300, 500, 1050, 1060, 5000];
  const { episodes, broken } = judge([episode(0, 10, 1055), episode(1055, 1056, 9000)], stamps, PROMISES);
  assert.deepEqual(
    episodes.map(({ most, written }) => [most, written]),
    [
      [4, 4],
      [5, 2],
    ],
  );
  assert.deepEqual(broken, ["test: 5 written in a window, at most 4 are promised"]);
});

test("in mode share each separated process may add its share, in mode wait none", () => {
  const stamps = [1, 2, 3, 4, 5, 6];
  const one = episode(0, 10, 500, 2);
  assert.deepEqual(judge([one], stamps, { ...PROMISES, mode: "share" }).broken, []);
  assert.equal(judge([one], stamps, PROMISES).broken.length, 1);
  assert.equal(judge([one], [...stamps, 7], { ...PROMISES, mode: "share" }).broken.length, 1);
});

test("recovery ends with the first window of at least 80 % of the limit after the fault", () => {
  const slow = episode(0, 10_000, 9_000_000);
  const stamps = [12_000, 14_000, 3_010_000, 3_010_300, 3_010_600, 3_010_999];
  const { episodes, broken } = judge([slow], stamps, PROMISES);
  assert.equal(episodes[0]?.recoveryMs, 3000);
  assert.deepEqual(broken, ["test: full speed again after 3000 ms, 2000 ms are promised"]);
  assert.deepEqual(judge([slow], [], PROMISES).broken, [
    "test: full speed again after more than the calm time, 2000 ms are promised",
  ]);
  assert.deepEqual(judge([{ ...slow, returnsStore: false }], [], PROMISES).broken, []);
});

test("the most in any window equals the largest count over windows that are counted one by one", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 40 }), stamps => {
      const { episodes } = judge([episode(0, 0, 5001)], stamps, PROMISES);
      const counts = stamps.map(us => stamps.filter(other => other <= us && other > us - 1000).length);
      assert.equal(episodes[0]?.most, Math.max(0, ...counts));
    }),
  );
});

test("a process that reports one outage several times is named, a restarted one is not", () => {
  const away = (atUs: number, pid: number) => ({ atUs, line: `(node:${pid}) the shared store does not answer: why` });
  const back = { atUs: 4, line: "(node:1) the shared store answers again" };
  const one = episode(0, 10, 500);
  assert.deepEqual(judgeLines([one], [away(1, 1), back, away(5, 2), away(600, 1)]), []);
  assert.deepEqual(judgeLines([one], [away(1, 1), back, away(5, 1), away(6, 1), away(7, 2)]), [
    "test: a process reported the outage 3 times, once is promised",
  ]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { makeWindow, type Window, WindowLog } from "./window-log.ts";

const S = 1_000_000;

/** Writes units as long as the log allows it at once; returns their number. */
function burst(log: WindowLog, windows: readonly Window[], nowUs: number, most = Number.POSITIVE_INFINITY): number {
  let count = 0;
  while (count < most && log.earliestUs(windows, 0, 1, nowUs) <= nowUs) {
    log.write(windows, 1, nowUs);
    count += 1;
  }
  return count;
}

test("a window admits its limit at once and one more for each that leaves it", () => {
  const windows = [makeWindow(3, S)];
  const log = new WindowLog();
  assert.equal(burst(log, windows, 0, 1), 1);
  assert.equal(burst(log, windows, 400_000), 2);
  assert.equal(log.earliestUs(windows, 0, 1, 400_000), S);
  assert.equal(burst(log, windows, S - 1), 0);
  assert.equal(burst(log, windows, S), 1);
  assert.equal(log.earliestUs(windows, 0, 1, S), 1_400_000);
});

test("a send must fit in every window", () => {
  const windows = [makeWindow(2, S), makeWindow(10, 60 * S)];
  const log = new WindowLog();
  const sent = [0, 1, 2, 3, 4, 5].map(second => burst(log, windows, second * S));
  assert.deepEqual(sent, [2, 2, 2, 2, 2, 0]);
  assert.equal(log.earliestUs(windows, 0, 1, 4 * S), 60 * S);
});

test("a granted unit that is not yet written counts as written now", () => {
  const windows = [makeWindow(2, S)];
  const log = new WindowLog();
  log.reserve(2);
  assert.equal(log.earliestUs(windows, 0, 1, 500), 500 + S);
  assert.equal(log.earliestUs(windows, 0, 1, 900_000), 900_000 + S);
  log.writeReserved(windows, 1, 950_000);
  assert.equal(log.earliestUs(windows, 0, 1, 960_000), 950_000 + S);
  log.giveBack(1);
  assert.ok(log.earliestUs(windows, 0, 1, 960_000) <= 960_000);
});

test("a request with a weight waits until that many units are free", () => {
  const windows = [makeWindow(5, S)];
  const log = new WindowLog();
  for (const ms of [0, 100, 200, 300]) burst(log, windows, ms * 1000, 1);
  assert.ok(log.earliestUs(windows, 0, 1, 300_000) <= 300_000);
  assert.equal(log.earliestUs(windows, 0, 2, 300_000), S);
  assert.equal(log.earliestUs(windows, 0, 4, 300_000), S + 200_000);
  assert.equal(log.earliestUs(windows, 0, 5, 300_000), S + 300_000);
});

test("a smoothed key keeps the spacing to its last send", () => {
  const windows = [makeWindow(5, S)];
  const log = new WindowLog();
  assert.ok(log.earliestUs(windows, 250_000, 1, 0) <= 0);
  burst(log, windows, 10, 1);
  assert.equal(log.earliestUs(windows, 250_000, 1, 10), 250_010);
});

test("a window that is stretched still counts earlier sends", () => {
  const log = new WindowLog();
  burst(log, [makeWindow(10, 60 * S)], 5 * S);
  assert.equal(log.earliestUs([makeWindow(10, 75 * S)], 0, 1, 6 * S), 80 * S);
});

test("a lowered limit uses the same stamps", () => {
  const windows = [makeWindow(5000, 3600 * S)];
  const log = new WindowLog();
  for (let i = 0; i < 1000; i += 1) burst(log, windows, i * S, 1);
  const lowered = [{ ...(windows[0] as Window), limit: 500 }];
  const freeUs = log.earliestUs(lowered, 0, 1, 1000 * S);
  // The 500th last unit was written at 500 s; one stored stamp covers at most 25 units.
  assert.ok(freeUs >= 4100 * S && freeUs <= 4125 * S, String(freeUs / S));
});

test("a log expires when it can no longer delay a request", () => {
  const windows = [makeWindow(2, S), makeWindow(10, 60 * S)];
  const log = new WindowLog();
  assert.equal(log.isExpired(windows, 0, 0), true);
  log.reserve(1);
  assert.equal(log.isExpired(windows, 0, 100 * S), false);
  log.writeReserved(windows, 1, 100 * S);
  assert.equal(log.isExpired(windows, 0, 160 * S - 1), false);
  assert.equal(log.isExpired(windows, 0, 160 * S), true);
  assert.equal(log.isExpired(windows, 90 * S, 160 * S), false);
});

interface Step {
  readonly kind: "send" | "reserve" | "write" | "return";
  readonly gapUs: number;
  readonly weight: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom("send", "send", "send", "reserve", "write", "return"),
  gapUs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 3000 })),
  weight: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 3 })),
});

/** The law, computed directly: the smallest t at which no interval [t - span, t] contains more than the limit. */
function oracleEarliestUs(windows: readonly Window[], stamps: readonly number[], units: number, nowUs: number): number {
  let candidates = [nowUs];
  for (const { spanUs } of windows) candidates = candidates.concat(stamps.map(stamp => stamp + spanUs));
  candidates = candidates.filter(us => us >= nowUs).sort((a, b) => a - b);
  const fits = (us: number) =>
    windows.every(({ limit, spanUs }) => stamps.filter(stamp => stamp > us - spanUs).length + units <= limit);
  return candidates.find(fits) ?? Number.POSITIVE_INFINITY;
}

test("the log agrees with a plain count for every schedule of sends, reservations, writes and returns", () => {
  const window = fc.record({ limit: fc.integer({ min: 3, max: 12 }), spanUs: fc.integer({ min: 1, max: 2000 }) });
  fc.assert(
    fc.property(
      fc.array(window, { minLength: 1, maxLength: 3 }),
      fc.array(step, { maxLength: 60, size: "max" }),
      (shapes, steps) => {
        const windows = shapes.map(({ limit, spanUs }) => makeWindow(limit, spanUs));
        const log = new WindowLog();
        const stamps: number[] = [];
        const reserved: number[] = [];
        let nowUs = 0;
        for (const { kind, gapUs, weight } of steps) {
          nowUs += gapUs;
          const oldest = reserved[0];
          if (kind === "write" && oldest !== undefined) {
            reserved.shift();
            log.writeReserved(windows, oldest, nowUs);
            for (let unit = 0; unit < oldest; unit += 1) stamps.push(nowUs);
          } else if (kind === "return" && oldest !== undefined) {
            reserved.shift();
            log.giveBack(oldest);
          } else {
            const held = reserved.flatMap(units => new Array<number>(units).fill(nowUs));
            const expected = oracleEarliestUs(windows, [...stamps, ...held], weight, nowUs);
            assert.equal(Math.max(nowUs, log.earliestUs(windows, 0, weight, nowUs)), expected);
            for (const [index, window] of windows.entries()) {
              const inside = [...stamps, ...held].filter(stamp => stamp > nowUs - window.spanUs).length;
              assert.equal(log.usedUnits(index, window, nowUs), inside);
            }
            if (expected > nowUs) continue;
            if (kind === "send") {
              log.write(windows, weight, nowUs);
              for (let unit = 0; unit < weight; unit += 1) stamps.push(nowUs);
            } else {
              log.reserve(weight);
              reserved.push(weight);
            }
          }
        }
      },
    ),
    { numRuns: 3000 },
  );
});

test("a long window never admits more than its limit, and loses less than half a percent of it", () => {
  const gaps = fc.array(
    fc.record({ waitS: fc.integer({ min: 0, max: 900 }), most: fc.integer({ min: 1, max: 2500 }) }),
    {
      minLength: 5,
      maxLength: 60,
    },
  );
  fc.assert(
    fc.property(fc.integer({ min: 201, max: 5000 }), gaps, (limit, plan) => {
      const windows = [makeWindow(limit, 3600 * S)];
      const log = new WindowLog();
      const sends: { readonly us: number; readonly count: number }[] = [];
      let nowUs = 0;
      for (const { waitS, most } of plan) {
        nowUs += waitS * S;
        const count = burst(log, windows, nowUs, most);
        sends.push({ us: nowUs, count });
        const inWindow = sends.filter(({ us }) => us > nowUs - 3600 * S).reduce((sum, send) => sum + send.count, 0);
        assert.ok(inWindow <= limit, `${inWindow} of ${limit}`);
        if (count < most) assert.ok(inWindow > limit * 0.995 - 1, `${inWindow} of ${limit}`);
      }
    }),
    { numRuns: 200 },
  );
});

test("a log allocates arrays only when its stamps differ, and only as large as its units need", () => {
  const windows = [makeWindow(1000, 60_000_000)];
  const log = new WindowLog();
  log.write(windows, 100, 5);
  log.replaceWindows(windows, windows);
  assert.equal(log.dump().rings, undefined);
  log.write(windows, 1, 6);
  // For a limit of 1000 every fifth stamp is stored.
  assert.deepEqual(
    log.dump().rings?.map(({ length }) => length),
    [20],
  );
});

test("a window stores at most about 200 time stamps", () => {
  const shape = ({ grain, capacity }: Window) => [grain, capacity];
  assert.deepEqual(
    [200, 201, 5000, 4999].map(limit => shape(makeWindow(limit, 1))),
    [
      [1, 201],
      [2, 102],
      [25, 201],
      [25, 201],
    ],
  );
});

test("a limit lowered below one stored stamp uses the exact latest stamps", () => {
  const windows = [makeWindow(5000, 3600e6)];
  const log = new WindowLog();
  for (let i = 1; i <= 990; i += 1) log.write(windows, 1, i * 1e6);
  assert.equal(log.earliestUs([{ ...(windows[0] as Window), limit: 5 }], 0, 1, 1000e6), 990e6 + 3600e6);
  assert.equal(log.earliestUs([{ ...(windows[0] as Window), limit: 16 }], 0, 1, 1000e6), 975e6 + 3600e6);
});

interface Send {
  readonly atUs: number;
  units: number;
}

/** The first instant from `nowUs` on at which no interval of the span holds more than the limit, by looking at each send. */
function freeByList(sends: readonly Send[], { limit, spanUs }: Window, units: number, nowUs: number): number {
  let sum = units;
  let freeUs = nowUs;
  for (const send of sends.toReversed()) {
    sum += send.units;
    if (sum > limit && send.units > 0) freeUs = Math.max(freeUs, send.atUs + spanUs);
  }
  return freeUs;
}

test("a refund leaves what the other requests have used: a fine window is exact, a coarse one never too early", () => {
  const step = fc.record({
    gapUs: fc.constantFrom(0, 1, 40, 150, 1000),
    units: fc.integer({ min: 1, max: 9 }),
    kind: fc.constantFrom("send", "send", "refund", "debt"),
    which: fc.nat(20),
  });
  fc.assert(
    fc.property(fc.constantFrom(10, 40, 450, 3000), fc.array(step, { maxLength: 60 }), (limit, steps) => {
      const windows = [makeWindow(limit, 1000), makeWindow(limit * 3, 5000)];
      const log = new WindowLog();
      const sends: Send[] = [];
      const scale = Math.max(1, Math.floor(limit / 30));
      let nowUs = 0;
      let hasDebts = false;
      for (const { gapUs, units, kind, which } of steps) {
        nowUs += gapUs;
        const send = sends[sends.length - 1 - (which % (sends.length || 1))];
        if (kind === "refund") {
          const returned = Math.min(units * scale, send?.units ?? 0);
          if (send === undefined || returned === 0) continue;
          log.refund(windows, returned, send.atUs);
          send.units -= returned;
        } else if (kind === "debt" || log.earliestUs(windows, 0, units * scale, nowUs) <= nowUs) {
          hasDebts ||= kind === "debt";
          log.write(windows, units * scale, nowUs);
          sends.push({ atUs: nowUs, units: units * scale });
        }
        for (const window of windows) {
          const index = windows.indexOf(window);
          const freeUs = Math.max(nowUs, log.windowFreeUs(index, window, scale, nowUs));
          const exactUs = freeByList(sends, window, scale, nowUs);
          assert.ok(freeUs >= exactUs, `admits at ${freeUs}, the list at ${exactUs}`);
          if (window.grain === 1 && !hasDebts) assert.equal(freeUs, exactUs);
        }
      }
    }),
    { numRuns: 3000 },
  );
});

test("a debt larger than the window delays the next request by one window", () => {
  const windows = [makeWindow(100, S)];
  const log = new WindowLog();
  log.write(windows, 1_000_000_000_000, 5);
  assert.equal(log.earliestUs(windows, 0, 1, 10), S + 5);
  assert.equal(log.usedUnits(0, windows[0] as Window, 10), 100);
  assert.ok(log.earliestUs(windows, 0, 100, S + 5) <= S + 5);
});

test("a log with more units than a number can count goes on, and admits nothing early", () => {
  const windows = [makeWindow(3, S), makeWindow(1000, 60 * S)];
  const log = new WindowLog();
  for (let minute = 0; minute < 20; minute += 1) {
    const nowUs = minute * 60 * S;
    assert.equal(log.earliestUs(windows, 0, 1, nowUs) <= nowUs, true, `minute ${minute}`);
    log.write(windows, 1e15, nowUs);
    assert.equal(log.earliestUs(windows, 0, 1, nowUs), nowUs + 60 * S);
  }
  assert.equal(burst(log, windows, 20 * 60 * S, 10), 3);
  assert.equal(burst(log, windows, 20 * 60 * S + S / 2), 0);
  assert.equal(burst(log, windows, 20 * 60 * S + S, 10), 3);
});

test("merging keeps every unit, also those that only a later window with a higher limit counts", () => {
  const daily = [makeWindow(5_000_000, 86_400 * S)];
  const log = new WindowLog();
  log.write(daily, 4_000_000, 0);
  for (const windows of [[], [makeWindow(10, S)]]) {
    const merged = WindowLog.merged(windows, [{ log, windows: daily }]);
    merged.replaceWindows(windows, daily);
    assert.equal(merged.usedUnits(0, daily[0] as Window, S), 4_000_000);
  }
});

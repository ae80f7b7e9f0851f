import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { Archive } from "../bench/race/archive.ts";
import { readArguments, UsageError } from "../bench/race/arguments.ts";
import { type BoundInput, fastestMs } from "../bench/race/bound.ts";
import { chartOf } from "../bench/race/chart.ts";
import { CLIENTS, OURS } from "../bench/race/client-spec.ts";
import { type Counting, counterOf } from "../bench/race/counters.ts";
import { documentOf, placed, tableOf } from "../bench/race/document.ts";
import { figuresOf } from "../bench/race/figures.ts";
import { RaceLimitEnforcer } from "../bench/race/limit-enforcer.ts";
import type { RaceWindow } from "../bench/race/limits.ts";
import { parseResult, type RunOutcome, type ScenarioResult } from "../bench/race/result.ts";
import { withRetry } from "../bench/race/retry.ts";
import { scenarios } from "../bench/race/scenarios.ts";
import { reportOfLog } from "../bench/race/servers/nginx.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** The earliest end of all schedules with whole milliseconds, found by trying every one. */
function shortestOfAll({ requests, limits, guardMs = 0, closed = [], halvedAtMs }: BoundInput): number {
  const { metadata = 0 } = requests;
  const isOpen = (ms: number) => closed.every(({ fromMs, toMs }) => ms < fromMs || ms >= toMs);
  const maySend = (sent: readonly number[], ms: number) =>
    isOpen(ms) &&
    limits.metadata.every(({ limit, windowMs }) => {
      const inForce = halvedAtMs !== undefined && ms >= halvedAtMs ? Math.floor(limit / 2) : limit;
      return sent.filter(before => before > ms - windowMs - guardMs).length < inForce;
    });
  let best = 60;
  const extend = (sent: readonly number[], fromMs: number) => {
    if (sent.length === metadata) best = Math.min(best, sent.at(-1) ?? 0);
    else for (let ms = fromMs; ms < best; ms += 1) if (maySend(sent, ms)) extend([...sent, ms], ms);
  };
  // The first request is sent at 0, or at the first instant that is allowed.
  extend([], 0);
  return best;
}

const window = fc.record({ limit: fc.integer({ min: 2, max: 4 }), windowMs: fc.integer({ min: 1, max: 5 }) });
const interval = fc
  .tuple(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 1, max: 4 }))
  .map(([fromMs, ms]) => ({ fromMs, toMs: fromMs + ms }));

test("the bound is the end of the fastest possible schedule", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 6 }),
      fc.array(window, { minLength: 1, maxLength: 2 }),
      fc.integer({ min: 0, max: 2 }),
      fc.option(interval, { nil: undefined }),
      fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined }),
      (metadata, windows, guardMs, closed, halvedAtMs) => {
        const input: BoundInput = {
          requests: { metadata },
          limits: { metadata: windows },
          guardMs,
          closed: closed ? [closed] : [],
          ...(halvedAtMs !== undefined && { halvedAtMs }),
        };
        assert.equal(fastestMs(input), shortestOfAll(input));
      },
    ),
    { numRuns: 300 },
  );
});

test("with several roles, the bound follows the slowest role and the total", () => {
  const second = (limit: number): readonly RaceWindow[] => [{ limit, windowMs: 1000 }];
  const limits = { metadata: second(8), artifact: second(3), total: second(10) };
  assert.equal(fastestMs({ requests: { metadata: 16, artifact: 1 }, limits }), 1000);
  assert.equal(fastestMs({ requests: { metadata: 1, artifact: 10 }, limits }), 3000);
  assert.equal(fastestMs({ requests: { metadata: 16, artifact: 6 }, limits }), 2000);
  assert.equal(fastestMs({ requests: { metadata: 16, artifact: 6 }, limits, guardMs: 25 }), 2050);
});

test("each counting algorithm accepts the right requests and returns when the next one is accepted", () => {
  const admitted = (counting: Counting, instants: readonly number[]) => {
    const counter = counterOf(counting, { limit: 2, windowMs: 1000 });
    return instants.filter(ms => {
      const isAccepted = counter.waitMs(ms, 2) <= 0;
      if (isAccepted) counter.add(ms);
      return isAccepted;
    });
  };
  assert.deepEqual(admitted("any-window", [5900, 5950, 6000, 6899, 6900, 6910, 6950]), [5900, 5950, 6900, 6950]);
  assert.deepEqual(admitted("fixed-window", [5900, 5950, 5960, 6000, 6001, 6002]), [5900, 5950, 6000, 6001]);
  // At 6500 half of the two earlier requests still count: one more is accepted, and the next when none of them counts.
  assert.deepEqual(admitted("two-buckets", [5900, 5950, 6000, 6500, 6600, 7000, 7001]), [5900, 5950, 6500, 7000]);
  for (const counting of ["any-window", "two-buckets", "fixed-window"] as const) {
    const counter = counterOf(counting, { limit: 2, windowMs: 1000 });
    counter.add(5900);
    counter.add(5950);
    const waitMs = counter.waitMs(5960, 2);
    assert.ok(waitMs > 0);
    assert.ok(counter.waitMs(5960 + waitMs / 2, 2) > 0, counting);
  }
});

test("the enforcer counts rejections and requests during an outage separately", () => {
  const enforcer = new RaceLimitEnforcer({
    limits: { metadata: [{ limit: 2, windowMs: 1000 }] },
    outage: { fromMs: 2000, toMs: 3500, sendsRetryAfter: true },
  });
  const statuses = [100, 110, 120, 1100, 2600, 3000, 3700].map(ms => enforcer.arrive(ms, "metadata").status);
  assert.deepEqual(statuses, [200, 200, 429, 200, 503, 503, 200]);
  assert.deepEqual(enforcer.report(), {
    arrivals: 7,
    rejections: 1,
    duringOutage: 2,
    recoveryMs: 100,
    retryAfterUntilMs: 3500,
    busiest: { count: 3, limit: 2, windowMs: 1000 },
  });
});

test("the log of nginx is read without the requests that warm it", () => {
  const log = "5.000 200 /warm\n5.100 200 /metadata/1\n5.150 200 /metadata/2\n5.200 429 /metadata/3\n";
  assert.deepEqual(reportOfLog(log, { metadata: [{ limit: 2, windowMs: 1000 }] }), {
    arrivals: 3,
    rejections: 1,
    duringOutage: 0,
    busiest: { count: 3, limit: 2, windowMs: 1000 },
  });
});

test("a halved limit is announced with every response and enforced at once", () => {
  const enforcer = new RaceLimitEnforcer({ limits: { metadata: [{ limit: 4, windowMs: 1000 }] }, halvedAtMs: 1500 });
  const policies = [0, 1, 2, 3, 1600, 1601, 1602].map(ms => {
    const { status, headers } = enforcer.arrive(ms, "metadata");
    return `${status} ${headers["ratelimit-policy"]}`;
  });
  assert.deepEqual(policies, [
    ...Array(4).fill('200 "w0";q=4;w=1'),
    ...Array(2).fill('200 "w0";q=2;w=1'),
    '429 "w0";q=2;w=1',
  ]);
});

test("a retry is never earlier than Retry-After, and the number of retries is limited", async () => {
  const { setTimeout: realTimeout } = globalThis;
  const pausesMs: number[] = [];
  globalThis.setTimeout = ((fire: () => void, ms: number) => {
    pausesMs.push(ms);
    return realTimeout(fire, 0);
  }) as typeof setTimeout;
  try {
    const responses = [
      { status: 429, retryAfterMs: 2000 },
      { status: 503, retryAfterMs: undefined },
    ];
    const status = await withRetry(
      async () => responses.shift() ?? { status: 200, retryAfterMs: undefined },
      () => 0.5,
    );
    assert.equal(status, 200);
    assert.deepEqual(pausesMs, [2250, 500]);
    assert.equal(
      await withRetry(
        async () => ({ status: 503, retryAfterMs: undefined }),
        () => 0,
      ),
      503,
    );
    assert.equal(pausesMs.length, 2 + 9);
  } finally {
    globalThis.setTimeout = realTimeout;
  }
});

const outcome: RunOutcome = {
  requests: 90,
  succeeded: 90,
  failed: 0,
  putBack: 0,
  makespanMs: 8280,
  boundMs: 8000,
  politeMs: 8200,
  cpuUsPerRequest: 2345,
  memoryMb: 51.4,
  arrivals: 90,
  rejections: 0,
  busiest: { count: 10, limit: 10, windowMs: 1000 },
};

const result: ScenarioResult = {
  version: 1,
  scenario: "r1",
  title: "one window",
  what: "10 per second, everything asked for at once.",
  isQuick: false,
  date: "2026-05-01T12:00:00.000Z",
  machine: "2 x a machine",
  load: 0.25,
  versions: { docstokg: "0.1.0", "p-queue": "10.0.0" },
  seed: "7",
  command: "npm run bench:race",
  tookMs: 65_000,
  runs: [
    { client: OURS, outcome },
    { client: "fetch", outcome: { ...outcome, makespanMs: 16_000, rejections: 180, arrivals: 270 } },
    { client: "p-queue", outcome: { ...outcome, makespanMs: 8100 } },
    { client: "p-throttle", cannot: "it is | out today" },
  ],
};

test("a table has a row for each client, with the reason when a client cannot take part", () => {
  assert.deepEqual(tableOf(result).split("\n"), [
    "| client | makespan, s | x optimum | rejections | most in a window | attempts per success | given up | CPU, ms/request | memory, MB |",
    "|---|---|---|---|---|---|---|---|---|",
    "| docstokg | 8.28 | 1.04 | 0 | 10 of 10 | 1.00 | 0 | 2.35 | 51 |",
    "| fetch + retry | 16.00 | 2.00 | 180 | 10 of 10 | 3.00 | 0 | 2.35 | 51 |",
    "| p-queue + retry | 8.10 | 1.01 | 0 | 10 of 10 | 1.00 | 0 | 2.35 | 51 |",
    "| p-throttle + retry | cannot: it is \\| out today |  |  |  |  |  |  |  |",
  ]);
});

test("each promise is compared with its figure: the optimum, the fewest rejections, the fastest polite client", () => {
  const [scenario] = scenarios(false);
  assert.ok(scenario);
  const reached = (seen: ScenarioResult) =>
    figuresOf(seen, scenario).map(({ what, isReached }) => [what.split("docstokg, ")[1], isReached]);
  assert.deepEqual(reached(result), [
    ["rejections", true],
    ["given up", true],
    ["makespan / optimum of a polite client", true],
    ["rejections, compared with the fewest of another client", true],
    ["slowness / that of the fastest other polite client", true],
  ]);
  const slow = { ...outcome, makespanMs: 8500, rejections: 1, failed: 1 };
  const worse = { ...result, runs: [{ client: OURS, outcome: slow }, ...result.runs.slice(1)] };
  assert.deepEqual(
    reached(worse).map(([, isReached]) => isReached),
    Array(5).fill(false),
  );
});

test("the document names machine, versions, date, seed and command, and keeps the text around its block", () => {
  const text = documentOf([result], scenarios(false));
  for (const part of [
    "2 x a machine",
    "| 0.3 to 0.3 |",
    "p-queue 10.0.0",
    "2026-05-01",
    "| seed | 7 |",
    "`npm run bench:race`",
    "1 min 5 s",
  ])
    assert.ok(text.includes(part), part);
  assert.match(text, /Not run yet: R2 two windows, /);
  const first = placed("one", undefined);
  const edited = `${first.replace("# Benchmarks", "# Benchmarks\n\nBy hand.")}\nBelow.\n`;
  const second = placed("two", edited);
  assert.ok(second.includes("By hand.") && second.endsWith("\nBelow.\n"));
  assert.ok(second.includes("\n\ntwo\n\n") && !second.includes("\n\none\n\n"));
  assert.throws(() => placed("two", "# Something else"), /no markers/);
});

test("the chart is well-formed and shows every client that finished", () => {
  const chart = chartOf([result, { ...result, scenario: "r2" }]);
  const opened = [...chart.matchAll(/<(\w+)\b[^>]*(?<!\/)>/g)].map(([, name]) => name);
  const closed = [...chart.matchAll(/<\/(\w+)>/g)].map(([, name]) => name);
  assert.deepEqual(opened.toSorted(), closed.toSorted());
  assert.ok(!/NaN|Infinity|undefined/.test(chart));
  for (const name of ["docstokg", "fetch + retry", "p-queue + retry"]) assert.ok(chart.includes(`>${name}: `), name);
  assert.ok(!chart.includes("p-throttle"));
  assert.match(chart, /prefers-color-scheme:dark/);
  assert.ok(!/NaN|Infinity/.test(chartOf([])));
});

test("saved results are loaded unchanged, and a damaged file is named", () => {
  const folder = temporaryFolder("race");
  const archive = new Archive(folder);
  archive.keep(result);
  archive.keep({ ...result, seed: "8" });
  assert.deepEqual(archive.kept(["r1", "r2"]), [{ ...result, seed: "8" }]);
  assert.deepEqual(readdirSync(folder), ["r1.json"]);
  writeFileSync(join(folder, "r2.json"), '{"version":1');
  assert.throws(() => archive.kept(["r2"]), /r2\.json is not JSON/);
  assert.throws(() => parseResult('{"version":2}', "r3.json"), /r3\.json is not a result of the race[\s\S]*version/);
});

test("an unknown name on the command line is an error that lists the known names", () => {
  assert.deepEqual(
    readArguments(["--only", "R5"]).scenarios.map(({ id }) => id),
    ["r5-retry-after", "r5-no-retry-after"],
  );
  assert.throws(
    () => readArguments(["--only", "R12"]),
    error => error instanceof UsageError && /R11/.test(error.message),
  );
  assert.throws(
    () => readArguments(["--clients", "axios"]),
    error => error instanceof UsageError && /p-queue/.test(error.message),
  );
  assert.throws(() => readArguments(["--fast"]), UsageError);
});

test("every scenario has a unique id, and every client has a file", () => {
  const ids = scenarios(false).map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual(
    scenarios(true).map(({ id }) => id),
    ids,
  );
  const files = readdirSync(new URL("../bench/race/clients", import.meta.url));
  assert.deepEqual(CLIENTS.map(({ id }) => `${id}.ts`).toSorted(), files.toSorted());
});

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { databaseOf } from "../../test/harvest/kit.ts";
import { BreakerOpenError, BusyError, RateLimitExceeded, type RejectionDetails } from "../errors.ts";
import type { Hub } from "../http/hub.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { Reason } from "./reason.ts";
import type { Resolver } from "./resolvers/resolver.ts";
import { type HarvestRun, openRun, type RunOptions } from "./run.ts";
import type { Work } from "./work.ts";

/** Times of the requests in milliseconds, by host. */
type Sent = Map<string, number[]>;

const detailsOf = (host: string): RejectionDetails => ({
  host,
  role: "metadata",
  constraint: { kind: "window", owner: host, limit: "a limit" },
});

/** Every response is a 404; `refuse` decides whether a request is refused. */
function fakeHub(
  time: FakeTime,
  sent: Sent,
  refuse: (host: string, nowMs: number, earlier: readonly number[]) => void,
) {
  let inFlight = 0;
  const most = { inFlight: 0 };
  const request = async (url: string | URL) => {
    const { host } = new URL(url);
    const nowMs = time.monotonicUs() / 1000;
    const earlier = sent.get(host) ?? [];
    refuse(host, nowMs, earlier);
    sent.set(host, [...earlier, nowMs]);
    inFlight += 1;
    most.inFlight = Math.max(most.inFlight, inFlight);
    await setImmediate();
    inFlight -= 1;
    return { statusCode: 404, headers: {}, body: Readable.from([Buffer.from("no")]) };
  };
  return { hub: { request } as unknown as Pick<Hub, "request">, most };
}

function resolverAt(name: string, host: (work: Work) => string): Resolver {
  return {
    name,
    needs: [],
    requestFor: work => ({ url: `https://${host(work)}/${work.key}`, role: "metadata" }),
    parse: () => ({ kind: "none", reason: "unknown-work" }),
  };
}

const works = (count: number) =>
  Array.from({ length: count }, (_, index): Work => ({ key: `doi:10.1/${index}`, ids: { doi: `10.1/${index}` } }));
const isEven = ({ key }: Work) => Number(key.split("/")[1]) % 2 === 0;

interface CompletedRun {
  readonly run: HarvestRun;
  readonly settled: Map<string, Reason>;
}

/** Advances the fake time whenever the pipeline waits for a timer, until every work is settled. */
async function runToEnd(
  t: TestContext,
  time: FakeTime,
  wanted: readonly Work[],
  options: Pick<RunOptions, "hub" | "resolvers"> & Partial<RunOptions>,
  onOpened?: (run: HarvestRun) => void,
): Promise<CompletedRun> {
  const folder = mkdtempSync(join(tmpdir(), "docstokg-pipeline-"));
  const settled = new Map<string, Reason>();
  const run = await openRun({
    time,
    folder,
    manifest: join(folder, "manifest.sqlite"),
    command: "test",
    order: () => options.resolvers,
    onSettled: ({ key }, _, reason) => settled.set(key, reason),
    ...options,
  });
  t.after(async () => {
    await run.close("ended");
    rmSync(folder, { recursive: true, force: true });
  });
  onOpened?.(run);
  await run.addWorks(wanted);
  run.pipeline.inputEnded();
  let isOver = false;
  const ended = run.pipeline.run().finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await setImmediate();
    if (run.pipeline.inFlight > 0) continue;
    const nextMs = time.nextTimerMs;
    if (nextMs !== undefined) await time.advance(nextMs);
  }
  await ended;
  return { run, settled };
}

test("a refused request is tried again at the given time, and a slow host delays no other", async t => {
  const time = new FakeTime();
  const sent: Sent = new Map();
  const { hub } = fakeHub(time, sent, (host, nowMs, earlier) => {
    const freeMs = (earlier.at(-1) ?? Number.NEGATIVE_INFINITY) + 3000;
    if (host === "slow.example" && nowMs < freeMs) {
      throw new RateLimitExceeded({ ...detailsOf(host), retryAfterMs: freeMs - nowMs, maxWaitMs: 100 });
    }
  });
  const one = resolverAt("one", work => (isEven(work) ? "slow.example" : "quick.example"));
  const { settled, run } = await runToEnd(t, time, works(10), { hub, resolvers: [one] });
  assert.deepEqual(sent.get("slow.example"), [0, 3000, 6000, 9000, 12_000]);
  assert.deepEqual(sent.get("quick.example"), [0, 0, 0, 0, 0]);
  assert.deepEqual(new Set(settled.values()), new Set(["unknown-work"]));
  const attempts = databaseOf(run.manifest).prepare("SELECT count(*) AS count FROM attempts").get()?.["count"];
  assert.equal(attempts, 10, "what was not sent is no attempt");
  assert.equal(time.armedTimers, 0);
});

test("a paused pipeline finishes its requests, starts no other, and continues when it is resumed", async t => {
  const time = new FakeTime();
  const sent: Sent = new Map();
  const { hub } = fakeHub(time, sent, () => undefined);
  let pausedAt: number | undefined;
  const count = () => sent.get("x.example")?.length ?? 0;
  await runToEnd(
    t,
    time,
    works(20),
    { hub, resolvers: [resolverAt("one", () => "x.example")], workers: 2 },
    ({ pipeline }) => {
      time.setTimer(5000, () => {
        assert.equal(count(), pausedAt);
        pipeline.resume();
      });
      pipeline.pause();
      assert.ok(pipeline.isPaused);
      pausedAt = count();
    },
  );
  assert.equal(pausedAt, 0);
  assert.equal(count(), 20);
  assert.equal(sent.get("x.example")?.[0], 5000);
});

test("while the lease is overdue no request is in flight, and aborted ones are sent again when it was renewed", async t => {
  const time = new FakeTime();
  const sent: string[] = [];
  let isHanging = true;
  const request = async (url: string | URL, { signal }: { readonly signal: AbortSignal }) => {
    sent.push(new URL(url).pathname);
    if (isHanging) await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    return { statusCode: 404, headers: {}, body: Readable.from([Buffer.from("no")]) };
  };
  const folder = mkdtempSync(join(tmpdir(), "docstokg-pipeline-"));
  const resolvers = [resolverAt("one", () => "x.example")];
  const settled: Reason[] = [];
  const run = await openRun({
    ...{ time, folder, manifest: join(folder, "manifest.sqlite"), command: "test", order: () => resolvers, resolvers },
    ...{ hub: { request } as unknown as Pick<Hub, "request">, workers: 2 },
    onSettled: (_, __, reason) => settled.push(reason),
  });
  t.after(async () => {
    await run.close("ended");
    rmSync(folder, { recursive: true, force: true });
  });
  await run.addWorks(works(3));
  run.pipeline.inputEnded();
  const ended = run.pipeline.run();
  while (run.pipeline.inFlight < 2) await setImmediate();
  run.pipeline.setOverdue(true);
  while (run.pipeline.inFlight > 0) await setImmediate();
  await time.advance(60_000);
  assert.deepEqual(sent, ["/doi:10.1/0", "/doi:10.1/1"]);
  isHanging = false;
  run.pipeline.setOverdue(false);
  while (settled.length < 3) {
    await setImmediate();
    if (run.pipeline.inFlight === 0) await time.advance(time.nextTimerMs ?? 0);
  }
  await ended;
  assert.deepEqual(sent.slice(2).sort(), ["/doi:10.1/0", "/doi:10.1/1", "/doi:10.1/2"]);
  assert.deepEqual(settled, ["unknown-work", "unknown-work", "unknown-work"]);
  const attempts = databaseOf(run.manifest).prepare("SELECT count(*) AS count FROM attempts").get()?.["count"];
  assert.equal(attempts, 3, "an aborted request is no attempt");
});

test("a host with an open circuit is tried again at the given time, and its works fail if that is too late", async t => {
  const time = new FakeTime();
  const sent: Sent = new Map();
  const { hub } = fakeHub(time, sent, (host, nowMs) => {
    const untilMs = host === "down.example" ? 5000 : host === "dead.example" ? 1e6 : 0;
    if (nowMs >= untilMs) return;
    throw new BreakerOpenError({ ...detailsOf(host), reason: "failures", cooldownRemainingMs: untilMs - nowMs });
  });
  const first = resolverAt("first", work => (isEven(work) ? "down.example" : "dead.example"));
  const second = resolverAt("second", () => "well.example");
  const { settled } = await runToEnd(t, time, works(4), { hub, resolvers: [first, second], maxBreakerWaitMs: 60_000 });
  assert.deepEqual(sent.get("well.example"), [0, 0, 0, 0]);
  assert.deepEqual(sent.get("down.example"), [5000, 5000]);
  assert.equal(sent.get("dead.example"), undefined);
  assert.deepEqual([...settled.values()].sort(), ["breaker-open", "breaker-open", "unknown-work", "unknown-work"]);
});

test("if every slot is in use, a finished request lets the next one start", async t => {
  const time = new FakeTime();
  const sent: Sent = new Map();
  let inside = 0;
  const { hub } = fakeHub(time, sent, host => {
    if (inside > 0) throw new BusyError({ ...detailsOf(host), maxWaitMs: 100 });
    inside += 1;
    void setImmediate().then(() => {
      inside -= 1;
    });
  });
  const { settled } = await runToEnd(t, time, works(6), {
    hub,
    resolvers: [resolverAt("one", () => "narrow.example")],
  });
  assert.equal(settled.size, 6);
  assert.equal(sent.get("narrow.example")?.length, 6);
});

test("requests in flight never exceed workers, and open works never exceed maxOpen", async t => {
  const time = new FakeTime();
  const sent: Sent = new Map();
  let mostOpen = 0;
  let run: HarvestRun | undefined;
  const { hub, most } = fakeHub(time, sent, () => {
    mostOpen = Math.max(mostOpen, run?.pipeline.openWorks ?? 0);
  });
  const resolvers = [resolverAt("one", ({ key }) => `h${key.length}.example`), resolverAt("two", () => "two.example")];
  const made = await runToEnd(t, time, works(200), { hub, resolvers, workers: 3, maxOpen: 7 }, opened => {
    run = opened;
  });
  assert.equal(made.settled.size, 200);
  assert.equal(most.inFlight, 3);
  assert.equal(made.run.pipeline.openWorks, 0);
  assert.equal(mostOpen, 7);
});

test("a run ends if its last works are dropped with their resolver while the manifest is slow", async t => {
  const time = new FakeTime();
  const { hub } = fakeHub(time, new Map(), () => undefined);
  const message = "the service has blocked this program";
  const refusing: Resolver = {
    ...resolverAt("one", () => "x.example"),
    parse: () => ({ kind: "failure", reason: "refused", message, isForAllWorks: true }),
  };
  const { settled } = await runToEnd(t, time, works(5), { hub, resolvers: [refusing], workers: 1 }, ({ manifest }) => {
    const fail = manifest.fail.bind(manifest);
    t.mock.method(manifest, "fail", async (...parameters: Parameters<typeof fail>) => {
      for (let turns = 0; turns < 5; turns += 1) await setImmediate();
      return fail(...parameters);
    });
  });
  assert.deepEqual(
    [...settled.values()],
    Array.from({ length: 5 }, () => "refused"),
  );
});

test("a refused request about several works counts as one deferral", async t => {
  const time = new FakeTime();
  const sent: Sent = new Map();
  const { hub } = fakeHub(time, sent, (host, nowMs) => {
    if (nowMs < 1000) throw new RateLimitExceeded({ ...detailsOf(host), retryAfterMs: 1000 - nowMs, maxWaitMs: 100 });
  });
  const one = resolverAt("one", () => "x.example");
  const batched: Resolver = {
    ...one,
    batch: {
      maxWorks: 10,
      groupOf: () => "all",
      requestFor: () => ({ url: "https://x.example/batch", role: "metadata" }),
      parse: (_, asked) => asked.map(() => ({ kind: "none", reason: "unknown-work" })),
    },
  };
  const deferred: [string, number][] = [];
  const { settled } = await runToEnd(t, time, works(5), {
    hub,
    resolvers: [batched],
    onDeferred: (host, waitMs) => deferred.push([host, waitMs]),
  });
  assert.deepEqual(deferred, [["x.example", 1000]]);
  assert.deepEqual(sent.get("x.example"), [1000]);
  assert.equal(settled.size, 5);
});

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { call, keepingSink } from "../../test/telemetry/kit.ts";
import type { HubEvent } from "../http/hub-options.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { Sink } from "./sink.ts";
import { QueuedSink } from "./sinks/queued-sink.ts";
import { createTelemetry } from "./telemetry.ts";

const head: HubEvent = { event_type: "rate_head_skipped", host: "api.example.org", role: "metadata" };
const never = () => new Promise<void>(() => undefined);

function recordWarnings(t: TestContext): string[] {
  const warnings: string[] = [];
  const onWarning = ({ message }: Error) => warnings.push(message);
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  return warnings;
}

/** Closes a telemetry with this sink after 3 events and the two of the run. Time has passed by one second. */
async function closed(sink: Sink, before: (flush: () => Promise<void>) => Promise<void> = async () => undefined) {
  const time = new FakeTime();
  const telemetry = createTelemetry({ sinks: [sink, keepingSink()], closeTimeoutMs: 1000, time });
  await before(() => telemetry.flush());
  for (let i = 0; i < 3; i += 1) telemetry.listener(head);
  const closing = telemetry.close();
  await time.advance(999);
  assert.equal(telemetry.dropped["mine"], sink.dropped ?? 0);
  await time.advance(1);
  await closing;
  assert.equal(time.armedTimers, 0);
  return telemetry.dropped;
}

const report = (events: number) =>
  `telemetry sink mine did not close within 1000 ms (closeTimeoutMs); ${events === 0 ? "no event was lost, but run_summary of a SQLite file may be missing" : `${events} events that it has not written count as dropped`}`;

test("a sink whose close never ends delays telemetry.close by closeTimeoutMs, and its events count as dropped", async t => {
  const warnings = recordWarnings(t);
  assert.deepEqual(await closed({ name: "mine", take: () => undefined, close: never }), { mine: 5, kept: 0 });
  assert.deepEqual(warnings, [report(5)]);
});

test("a sink whose take never ends delays telemetry.close by closeTimeoutMs, and its events count as dropped", async t => {
  const warnings = recordWarnings(t);
  assert.deepEqual(await closed({ name: "mine", take: never }), { mine: 5, kept: 0 });
  assert.deepEqual(warnings, [report(5)]);
});

test("events that a sink has confirmed by take or flush do not count as dropped when its close hangs", async t => {
  const warnings = recordWarnings(t);
  let taken = 0;
  const take = async () => {
    taken += 1;
    if (taken > 2) await never();
  };
  assert.deepEqual(await closed({ name: "mine", take, close: never }), { mine: 3, kept: 0 });
  const flushed = { name: "mine", take: () => undefined, flush: async () => undefined, close: never };
  assert.deepEqual(await closed(flushed, flush => flush()), { mine: 4, kept: 0 });
  assert.deepEqual(warnings, [report(3), report(4)]);
});

test("events that a sink counts as dropped itself are not counted again when its close hangs", async t => {
  const warnings = recordWarnings(t);
  const sink = { name: "mine", dropped: 0, take: () => undefined, close: never };
  sink.take = () => {
    sink.dropped += 1;
  };
  assert.deepEqual(await closed(sink), { mine: 5, kept: 0 });
  assert.deepEqual(warnings, [report(0)]);
});

test("a sink that stops when the signal is aborted is trusted with its own count", async t => {
  const warnings = recordWarnings(t);
  const sink = {
    name: "mine",
    dropped: 0,
    take: () => undefined,
    close: (signal?: AbortSignal) =>
      new Promise<void>(resolve =>
        signal?.addEventListener("abort", () => {
          sink.dropped += 2;
          resolve();
        }),
      ),
  };
  assert.deepEqual(await closed(sink), { mine: 2, kept: 0 });
  assert.deepEqual(warnings, [report(2)]);
});

test("a queue whose disk hangs drops its queued events and the batch that is being written", async t => {
  const warnings = recordWarnings(t);
  const writer = { encode: (event: unknown) => event, write: never, close: never };
  const sink = new QueuedSink("mine", writer, { maxQueued: 4, time: new FakeTime() });
  sink.take(call(0, "a.example"));
  // One event was taken before; the reserved capacity takes run_ended, and the queue drops one of the others.
  assert.deepEqual(await closed(sink), { mine: 6, kept: 0 });
  assert.deepEqual(warnings, [report(5)]);
});

test("close waits for the promises of take, and calls close of the sink at once", async t => {
  const warnings = recordWarnings(t);
  const writing: (() => void)[] = [];
  const calls: string[] = [];
  const sink: Sink = {
    name: "mine",
    take: () => new Promise<void>(resolve => writing.push(resolve)),
    close: async () => void calls.push("close"),
  };
  const telemetry = createTelemetry({ sinks: [sink], time: new FakeTime() });
  const closing = telemetry.close().then(() => calls.push("closed"));
  for (const end of writing) {
    assert.deepEqual(calls, ["close"]);
    end();
    await new Promise(resolve => setImmediate(resolve));
  }
  await closing;
  assert.equal(writing.length, 2);
  assert.deepEqual([calls, telemetry.dropped, warnings], [["close", "closed"], { mine: 0 }, []]);
});

test("events that a sink has not confirmed count as dropped when its close rejects", async t => {
  const warnings = recordWarnings(t);
  const close = async () => {
    throw new Error("the server is gone");
  };
  const closeNow = async (sink: Sink) => {
    const telemetry = createTelemetry({ sinks: [sink] });
    await telemetry.flush();
    telemetry.listener(head);
    await telemetry.close();
    return telemetry.dropped["mine"];
  };
  const take = () => undefined;
  assert.equal(await closeNow({ name: "mine", take, close }), 3);
  assert.equal(await closeNow({ name: "mine", take, flush: async () => undefined, close }), 2);
  assert.equal(await closeNow({ name: "mine", take: async () => undefined, close }), 0);
  // A sink that counts its drops knows them.
  assert.equal(await closeNow({ name: "mine", take, dropped: 1, close }), 1);
  await new Promise(resolve => setImmediate(resolve));
  assert.equal(warnings.length, 4);
});

test("a close that rejects after the telemetry has given up does not end the process", async t => {
  const warnings = recordWarnings(t);
  const { promise, reject } = Promise.withResolvers<void>();
  await closed({ name: "mine", take: () => undefined, close: () => promise });
  reject(new Error("token=hunter2 was refused"));
  await new Promise(resolve => setImmediate(resolve));
  assert.deepEqual(warnings, [
    report(5),
    "telemetry sink mine failed: token=… was refused; its further errors are not reported, and events that it does not take count as dropped",
  ]);
});

test("an invalid closeTimeoutMs is refused", () => {
  for (const closeTimeoutMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 3_600_001])
    assert.throws(
      () => createTelemetry({ sinks: [], closeTimeoutMs }),
      /^RangeError: closeTimeoutMs must be from 1 to 3600000, not /,
    );
});

test("a sink whose listensTo throws affects neither the others nor the request", async t => {
  const warnings = recordWarnings(t);
  const broken: Sink = {
    name: "broken",
    listensTo: () => {
      throw new Error("no");
    },
    take: () => assert.fail("it wants no event"),
  };
  const kept = keepingSink();
  const telemetry = createTelemetry({ sinks: [broken, kept] });
  telemetry.listener(head);
  await telemetry.close();
  await new Promise(resolve => setImmediate(resolve));
  assert.equal(kept.events.length, 3);
  assert.deepEqual(warnings, [
    "telemetry sink broken failed: no; its further errors are not reported, and events that it does not take count as dropped",
  ]);
});

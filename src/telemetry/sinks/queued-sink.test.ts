import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { until } from "../../../test/http/kit.ts";
import { call, keepingSink } from "../../../test/telemetry/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import type { HubEvent } from "../../http/hub-options.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import type { EmittedEvent } from "../emitted-event.ts";
import { createTelemetry } from "../telemetry.ts";
import { jsonlSink } from "./jsonl-sink.ts";
import { QueuedSink } from "./queued-sink.ts";
import { sqliteSink } from "./sqlite-sink.ts";

const head: HubEvent = { event_type: "rate_head_skipped", host: "api.example.org", role: "metadata" };

/** Queues the events themselves. */
const encode = ({ event }: EmittedEvent) => event;

class StuckWriter {
  readonly encode = encode;
  readonly written: number[] = [];
  release: () => void = () => undefined;
  #gate = new Promise<void>(resolve => {
    this.release = resolve;
  });

  async write(events: readonly unknown[]): Promise<void> {
    await this.#gate;
    this.written.push(events.length);
  }

  async close(): Promise<void> {
    await this.#gate;
  }
}

test("a sink that hangs delays no request: its queue is limited, and drops are counted and reported in place", async () => {
  const writer = new StuckWriter();
  const sink = new QueuedSink("slow", writer, { maxQueued: 300, delayMs: 0 });
  const kept = keepingSink();
  const { listener } = createTelemetry({ sinks: [sink, kept], runId: "r" });
  for (let i = 0; i < 1000; i += 1) listener(head);
  // run_started and 299 other events; then the queue is full.
  assert.equal(sink.dropped, 701);
  assert.equal(kept.events.length, 1001);
  writer.release();
  await sink.flush();
  assert.deepEqual(writer.written, [256, 45]);
});

test("events that a report needs are queued also when the queue is full", async () => {
  const events: string[] = [];
  const writer = {
    encode,
    write: async (batch: readonly { readonly event_type: string }[]) => {
      events.push(...batch.map(({ event_type }) => event_type));
    },
    close: async () => undefined,
  };
  const sink = new QueuedSink("small", writer, { maxQueued: 1 });
  for (let i = 0; i < 3; i += 1) sink.take(call(i, "a.example"));
  const { listener } = createTelemetry({ sinks: [sink] });
  listener({ event_type: "breaker_cooldown_set", host: "a.example", until: 1, reason: "retry-after" });
  await sink.close();
  assert.deepEqual(events, ["http_request", "run_started", "breaker_cooldown_set", "telemetry_dropped"]);
});

test("a write that fails loses only its batch, causes one warning, and is not repeated forever", async t => {
  const warned = once(process, "warning");
  let fails = 2;
  const written: unknown[] = [];
  const writer = {
    encode,
    write: async (batch: readonly unknown[]) => {
      fails -= 1;
      if (fails >= 0) throw new Error("no space left");
      written.push(...batch);
    },
    close: async () => undefined,
  };
  const sink = new QueuedSink("full", writer);
  t.after(() => sink.close());
  sink.take(call(0, "a.example"));
  await sink.flush();
  assert.equal(sink.dropped, 1);
  assert.match(String(await warned), /telemetry sink full drops events: no space left/);
  sink.take(call(1, "a.example"));
  await sink.flush();
  sink.take(call(2, "a.example"));
  await sink.flush();
  assert.equal(sink.dropped, 2);
  assert.deepEqual(
    written.map(event => Object.entries(event as object).filter(([key]) => key === "dropped" || key === "url_hash")),
    [[["url_hash", "0123456789abcdef"]], [["dropped", 2]]],
  );
});

test("an event that is queued while a batch ends is written", async () => {
  const time = new FakeTime();
  const first = Promise.withResolvers<void>();
  let written = 0;
  const writer = {
    encode,
    write: (batch: readonly unknown[]) => {
      if (written === 0 && batch.length === 1) {
        written += 1;
        return first.promise;
      }
      written += batch.length;
      return Promise.resolve();
    },
    close: async () => undefined,
  };
  const sink = new QueuedSink("quick", writer, { time });
  sink.take(call(0, "a.example"));
  const flushed = sink.flush();
  first.reject(new Error("no"));
  // After the sink has taken its batch, and before it looks at the queue again.
  queueMicrotask(() => sink.take(call(1, "a.example")));
  await flushed;
  await time.advance(50);
  // The lost event, the new event, and telemetry_dropped.
  assert.equal(written, 3);
  assert.equal(time.armedTimers, 0);
});

test("a flush ends while events keep arriving, when those before it are written", async t => {
  const written: number[] = [];
  const writer = {
    encode: ({ event }: EmittedEvent) => event.ts,
    write: async (batch: readonly number[]) => void written.push(...batch),
    close: async () => undefined,
  };
  const sink = new QueuedSink("busy", writer, { batchEvents: 2 });
  t.after(() => sink.close());
  let taken = 0;
  const takeOne = () => {
    sink.take(call(taken, "a.example"));
    taken += 1;
  };
  for (let i = 0; i < 5; i += 1) takeOne();
  let isFlushed = false;
  const first = sink.flush();
  takeOne();
  const before = taken;
  const flushed = Promise.all([first, sink.flush(), sink.flush()]).then(() => {
    isFlushed = true;
  });
  for (let turns = 0; !isFlushed; turns += 1) {
    assert.ok(turns < 100, `the flush has not ended after ${written.length} events`);
    takeOne();
    await new Promise(resolve => setImmediate(resolve));
  }
  await flushed;
  assert.ok(written.length >= before && written.length < taken);
});

test("a close that is aborted does not wait for a disk that hangs, and drops count until the disk has written", async () => {
  const time = new FakeTime();
  const writer = new StuckWriter();
  const sink = new QueuedSink("hung", writer, { time, delayMs: 0 });
  for (let i = 0; i < 300; i += 1) sink.take(call(i, "a.example"));
  const abort = new AbortController();
  const closed = sink.close(abort.signal);
  await time.advance(60_000);
  assert.equal(sink.dropped, 0);
  abort.abort();
  await closed;
  assert.equal(sink.dropped, 300);
  assert.equal(time.armedTimers, 0);
  writer.release();
  await until(() => writer.written.length === 2);
  // The batch of 256 was written after all, and a telemetry_dropped event for the rest.
  assert.deepEqual(writer.written, [256, 1]);
  assert.equal(sink.dropped, 300 - 256);
});

test("a batch that fails after the close was aborted is counted once", async () => {
  const { promise, reject } = Promise.withResolvers<void>();
  const sink = new QueuedSink("hung", { encode, write: () => promise, close: async () => undefined }, { delayMs: 0 });
  for (let i = 0; i < 300; i += 1) sink.take(call(i, "a.example"));
  const closed = sink.close(AbortSignal.abort());
  await closed;
  reject(new Error("no space left"));
  await until(() => sink.dropped === 300);
  await new Promise(resolve => setImmediate(resolve));
  assert.equal(sink.dropped, 300);
});

test("a full batch does not wait for the delay", async () => {
  const time = new FakeTime();
  const written: number[] = [];
  const write = async (batch: readonly unknown[]) => void written.push(batch.length);
  const sink = new QueuedSink("quick", { encode, write, close: async () => undefined }, { time, batchEvents: 10 });
  for (let i = 0; i < 9; i += 1) sink.take(call(i, "a.example"));
  await time.advance(49);
  assert.deepEqual(written, []);
  sink.take(call(9, "a.example"));
  assert.equal(time.armedTimers, 1);
  await time.tick(1);
  await until(() => written.length > 0);
  for (let i = 0; i < 10; i += 1) sink.take(call(i, "a.example"));
  await time.advance(1);
  await until(() => written.length > 1);
  assert.deepEqual(written, [10, 10]);
  assert.equal(time.armedTimers, 0);
});

test("a full queue does not wait for the delay, also if it is smaller than a batch", async () => {
  const time = new FakeTime();
  const written: number[] = [];
  const write = async (batch: readonly unknown[]) => void written.push(batch.length);
  const sink = new QueuedSink("small", { encode, write, close: async () => undefined }, { time, maxQueued: 10 });
  for (let i = 0; i < 10; i += 1) sink.take(call(i, "a.example"));
  await time.tick(1);
  await until(() => written.length > 0);
  assert.deepEqual([written, sink.dropped], [[10], 0]);
});

test("50,000 events of one turn are written to JSONL and SQLite without a drop", async () => {
  const folder = temporaryFolder("telemetry");
  const jsonl = await jsonlSink(join(folder, "telemetry.jsonl"));
  const sqlite = await sqliteSink(join(folder, "telemetry.db"));
  const telemetry = createTelemetry({ sinks: [jsonl, sqlite] });
  // With run_started the queues are full.
  for (let i = 1; i < 50_000; i += 1) telemetry.listener(head);
  await telemetry.flush();
  assert.deepEqual(telemetry.dropped, { jsonl: 0, sqlite: 0 });
  const lines = readFileSync(join(folder, "telemetry.jsonl"), "utf8").split("\n");
  const db = new DatabaseSync(join(folder, "telemetry.db"), { readOnly: true });
  const { n } = db.prepare("SELECT count(*) AS n FROM rate_events").get() as { n: number };
  db.close();
  assert.deepEqual([lines.length, n], [50_001, 49_999]);
  await telemetry.close();
});

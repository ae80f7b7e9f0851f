import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { hubFor, serve } from "../../test/http/kit.ts";
import { call, keepingSink } from "../../test/telemetry/kit.ts";
import type { HubEvent } from "../http/hub-options.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { redactedText } from "./redaction.ts";
import type { Sink } from "./sink.ts";
import { QueuedSink } from "./sinks/queued-sink.ts";
import { createTelemetry } from "./telemetry.ts";

const head: HubEvent = { event_type: "rate_head_skipped", host: "api.example.org", role: "metadata" };

function asked(allowed: boolean): HubEvent {
  const facts = { host: "api.example.org", role: "metadata", resolver: undefined } as const;
  const why = allowed
    ? ({ state: "closed", reason: undefined } as const)
    : ({ state: "open", reason: "failures" } as const);
  return { event_type: "breaker_before_call", ...facts, allowed, ...why, remaining_ms: allowed ? 0 : 5 };
}

test("every event has the time, the run and the policy, from the first to the last", async () => {
  const time = new FakeTime();
  const sink = keepingSink();
  const telemetry = createTelemetry({ sinks: [sink], runId: "r1", program: "test", time });
  telemetry.listener({ event_type: "policy_loaded", config_hash: "first" });
  await time.advance(1500);
  telemetry.listener(head);
  telemetry.listener({ event_type: "policy_loaded", config_hash: "second" });
  telemetry.listener(head);
  await telemetry.close();
  telemetry.listener(head);
  const start = 1_700_000_000_000;
  assert.deepEqual(
    sink.events.map(({ ts, event_type, run_id, config_hash }) => [ts - start, event_type, run_id, config_hash]),
    [
      [0, "run_started", "r1", ""],
      [0, "policy_loaded", "r1", "first"],
      [1500, "rate_head_skipped", "r1", "first"],
      [1500, "policy_loaded", "r1", "second"],
      [1500, "rate_head_skipped", "r1", "second"],
      [1500, "run_ended", "r1", "second"],
    ],
  );
  assert.deepEqual(Object.keys(sink.events[2] ?? {}), ["ts", "event_type", "run_id", "config_hash", "host", "role"]);
});

test("of allowed breaker_before_call events exactly the configured share is recorded, of refusals all", () => {
  const sink = keepingSink();
  const { listener } = createTelemetry({ sinks: [sink], sampleBeforeCall: 0.25 });
  for (let i = 0; i < 1000; i += 1) listener(asked(true));
  for (let i = 0; i < 10; i += 1) listener(asked(false));
  const kept = sink.events.filter(event => event.event_type === "breaker_before_call");
  assert.equal(kept.filter(({ allowed }) => allowed).length, 250);
  assert.equal(kept.filter(({ allowed }) => !allowed).length, 10);
  assert.ok(kept.every(({ allowed, sample_rate }) => sample_rate === (allowed ? 0.25 : undefined)));
});

test("a sampling rate of 0 records none, and 1 records all without the field sample_rate", () => {
  for (const [sampleBeforeCall, expected] of [
    [0, 0],
    [1, 100],
  ] as const) {
    const sink = keepingSink();
    const { listener } = createTelemetry({ sinks: [sink], sampleBeforeCall });
    for (let i = 0; i < 100; i += 1) listener(asked(true));
    const kept = sink.events.filter(event => event.event_type === "breaker_before_call");
    assert.equal(kept.length, expected);
    assert.ok(kept.every(({ sample_rate }) => sample_rate === undefined));
  }
});

test("invalid options are refused with a message that names the valid values", () => {
  assert.throws(
    () => createTelemetry({ sinks: [], sampleBeforeCall: 2 }),
    /sampleBeforeCall must be from 0 to 1, not 2/,
  );
  assert.throws(() => createTelemetry({ sinks: [], runId: "../x" }), /runId must be 1 to 128 letters.*not "\.\.\/x"/);
});

test("no secret of a URL or a header reaches a sink", () => {
  const sink = keepingSink();
  const { listener } = createTelemetry({ sinks: [sink] });
  const messages = [
    "connect redis://user:hunter2@cache.example.org/0 failed",
    "GET https://api.example.org/x?api_key=hunter2&q=1&apikey=hunter2;token=hunter2",
    "https://api.example.org/?email=hunter2@example.org&mailto=hunter2@example.org",
    "sent Authorization: Bearer hunter2 and authorization=hunter2",
    'headers {"Authorization": "Basic aHVudGVyMg=="}',
    "the token was bearer hunter2hunter2",
    "password = hunter2, access_token=hunter2",
    'X-API-Key: hunter2, {"token": "hunter2"}, mailto:hunter2@example.org',
    "https://api.example.org/?key=hunter2&sig=hunter2",
  ];
  for (const message of messages) listener({ event_type: "cache_trouble", message });
  listener({ event_type: "breaker_cooldown_set", host: "a.example", until: 1, reason: "cli-open:token=hunter2" });
  const written = JSON.stringify(sink.events);
  assert.ok(!written.includes("hunter2") && !written.includes("aHVudGVyMg"), written);
  assert.match(written, /redis:\/\/…@cache\.example\.org\/0 failed/);
  assert.match(written, /q=1/);
});

test("text without secrets is not changed", () => {
  for (const text of [
    "api.example.org",
    "10/SECOND+5000/HOUR",
    "database is locked",
    "monkey=1",
    "tokens left = 3",
    "key: metadata",
  ]) {
    assert.equal(redactedText(text), text);
  }
});

test("a sink that throws affects neither the others nor the request, and causes one warning", async t => {
  const warnings: string[] = [];
  const onWarning = ({ message }: Error) => warnings.push(message);
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  const broken: Sink = {
    name: "broken",
    take: () => {
      throw new Error("no");
    },
    close: async () => {
      throw new Error("neither");
    },
  };
  const sink = keepingSink();
  const telemetry = createTelemetry({ sinks: [broken, sink] });
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { telemetry: [telemetry.listener] });
  assert.equal(await (await hub.fetch(server.origin)).text(), "ok");
  await telemetry.close();
  await new Promise(resolve => setImmediate(resolve));
  assert.ok(sink.events.some(({ event_type }) => event_type === "http_request"));
  assert.deepEqual(warnings, ["telemetry sink broken failed: no; further errors are only counted"]);
  assert.equal(telemetry.dropped["broken"], sink.events.length + 1);
  assert.equal(telemetry.dropped["kept"], 0);
});

test("policy_loaded is the first event of a listener, and is emitted again after a reload", async t => {
  const sink = keepingSink();
  const telemetry = createTelemetry({ sinks: [sink] });
  const hub = await hubFor(t, { telemetry: [telemetry.listener] });
  const before = hub.configHash;
  await hub.reload({ breakers: { extends: "none", defaults: { fail_max: 2 } } });
  assert.deepEqual(
    sink.events.map(({ event_type, config_hash }) => [event_type, config_hash]),
    [
      ["run_started", ""],
      ["policy_loaded", before],
      ["policy_loaded", hub.configHash],
    ],
  );
  assert.notEqual(hub.configHash, before);
});

test("five failures, a wait and a success have the right states, one acquire per attempt, and hashed URLs", async t => {
  let isWell = false;
  const server = await serve(t, (_, response) => response.writeHead(isWell ? 200 : 503).end());
  const sink = keepingSink();
  const telemetry = createTelemetry({ sinks: [sink] });
  const hub = await hubFor(t, {
    cache: false,
    retry: false,
    telemetry: [telemetry.listener],
    breakers: {
      defaults: { roles: { metadata: { fail_max: 5, reset_timeout_s: 0.05 } }, half_open: { jitter_ms: 0 } },
      advanced: { rolling_window: { enabled: false }, adaptive_reset: { enabled: false } },
    },
  });
  const send = async () => (await hub.fetch(`${server.origin}/private`, { maxWaitMs: 60_000 })).text();
  for (let i = 0; i < 5; i += 1) await send();
  isWell = true;
  await send();
  const changes = sink.events.filter(event => event.event_type === "breaker_state_change");
  assert.deepEqual(
    changes.map(change => `${change.old}→${change.new}`),
    ["closed→open", "open→half_open", "half_open→closed"],
  );
  assert.equal(sink.events.filter(({ event_type }) => event_type === "ratelimit.acquire").length, 6);
  assert.ok(!JSON.stringify(sink.events).includes("private"));
});

class StuckWriter {
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

test("close does not wait for a disk that hangs", async () => {
  const time = new FakeTime();
  const writer = new StuckWriter();
  const sink = new QueuedSink("hung", writer, { time, delayMs: 0 });
  for (let i = 0; i < 300; i += 1) sink.take(call(i, "a.example"));
  const closed = sink.close();
  await time.advance(10_000);
  await closed;
  assert.equal(sink.dropped, 300 - 256);
  assert.equal(time.armedTimers, 0);
  writer.release();
});

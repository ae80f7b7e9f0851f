import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type TestContext, test } from "node:test";
import { hubFor, serve, until } from "../../test/http/kit.ts";
import { keepingSink } from "../../test/telemetry/kit.ts";
import type { HubEvent } from "../http/hub-options.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { Sink } from "./sink.ts";
import { channelSink } from "./sinks/channel-sink.ts";
import { prometheusSink } from "./sinks/prometheus-sink.ts";
import { QueuedSink } from "./sinks/queued-sink.ts";
import { createTelemetry } from "./telemetry.ts";

const head: HubEvent = { event_type: "rate_head_skipped", host: "api.example.org", role: "metadata" };

function beforeCall(allowed: boolean): HubEvent {
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
  const hub = { configHash: "first" };
  telemetry.listener({ event_type: "policy_loaded", config_hash: "first" }, hub);
  await time.advance(1500);
  telemetry.listener(head, hub);
  hub.configHash = "second";
  telemetry.listener({ event_type: "policy_loaded", config_hash: "second" }, hub);
  telemetry.listener(head, hub);
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
  const names = Object.keys(sink.events[2] ?? {}).sort();
  assert.deepEqual(names, ["config_hash", "event_type", "host", "role", "run_id", "ts"]);
});

test("exactly the configured share of allowed breaker_before_call events is recorded, and every refusal", () => {
  const sink = keepingSink();
  const { listener } = createTelemetry({ sinks: [sink], sampleBeforeCall: 0.25 });
  for (let i = 0; i < 1000; i += 1) listener(beforeCall(true));
  for (let i = 0; i < 10; i += 1) listener(beforeCall(false));
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
    for (let i = 0; i < 100; i += 1) listener(beforeCall(true));
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
  assert.deepEqual(warnings, [
    "telemetry sink broken failed: no; its further errors are not reported, and events that it does not take count as dropped",
  ]);
  assert.equal(telemetry.dropped["broken"], sink.events.length);
  assert.equal(telemetry.dropped["kept"], 0);
});

test("policy_loaded is the first event of a listener, and is emitted again after a reload", async t => {
  const sink = keepingSink();
  const telemetry = createTelemetry({ sinks: [sink] });
  const hub = await hubFor(t, { telemetry: [telemetry.listener] });
  const before = hub.configHash;
  await hub.reload({ breakers: { extends: "none", defaults: { fail_max: 2 } } });
  const changed = sink.events.filter(({ event_type }) => event_type === "policy_changed");
  assert.ok(changed.length > 0 && changed.every(({ config_hash }) => config_hash === hub.configHash));
  assert.deepEqual(
    sink.events.slice(0, 3).map(({ event_type, config_hash }) => [event_type, config_hash]),
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

/** The warnings of the process from now on. */
function recordWarnings(t: TestContext): string[] {
  const warnings: string[] = [];
  const onWarning = ({ message }: Error) => warnings.push(message);
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  return warnings;
}

test("a sink whose promises reject does not end the process: drops are counted, one warning is printed", async t => {
  const warnings = recordWarnings(t);
  const rejecting: Sink = { name: "remote", take: () => Promise.reject(new Error("api_key=hunter2 was refused")) };
  const telemetry = createTelemetry({ sinks: [rejecting] });
  for (let i = 0; i < 3; i += 1) telemetry.listener(head);
  await until(() => telemetry.dropped["remote"] === 4);
  await until(() => warnings.length > 0);
  assert.deepEqual(warnings, [
    "telemetry sink remote failed: api_key=… was refused; its further errors are not reported, and events that it does not take count as dropped",
  ]);
});

test("a rejection of a promise of another library is counted too", async t => {
  const warnings = recordWarnings(t);
  const thenable: object = {
    // biome-ignore lint/suspicious/noThenProperty: a promise of another library
    then: (_: unknown, onRejected: (error: Error) => void) => onRejected(new Error("no")),
  };
  const telemetry = createTelemetry({ sinks: [{ name: "remote", take: () => thenable }] });
  assert.equal(telemetry.dropped["remote"], 1);
  await until(() => warnings.length > 0);
  assert.deepEqual(warnings, [
    "telemetry sink remote failed: no; its further errors are not reported, and events that it does not take count as dropped",
  ]);
});

test("an item that is not a sink is refused by its place in the list, with a hint for a promise", () => {
  const create = (sinks: unknown) => () => createTelemetry({ sinks } as { sinks: readonly Sink[] });
  assert.throws(create(undefined), /^RangeError: sinks must be a list/);
  assert.throws(
    create([keepingSink(), null]),
    /^RangeError: sinks\[1\] is not a sink: it needs a name and a function take$/,
  );
  assert.throws(create([{ name: "mine" }]), /^RangeError: sinks\[0\] is not a sink/);
  assert.throws(create([Promise.resolve(keepingSink())]), /sinks\[0\] is not a sink: .*; await jsonlSink/);
});

test("a subscriber of a channel that throws or rejects does not end the process, and the other subscribers get the event", async t => {
  const warnings = recordWarnings(t);
  const telemetry = createTelemetry({ sinks: [channelSink()] });
  const received: unknown[] = [];
  const subscribers = [
    () => {
      throw new Error("thrown");
    },
    async () => {
      throw new Error("rejected");
    },
    (event: unknown) => void received.push(event),
  ];
  for (const subscriber of subscribers) subscribe("docstokg:rate_head_skipped", subscriber);
  t.after(() => {
    for (const subscriber of subscribers) unsubscribe("docstokg:rate_head_skipped", subscriber);
  });
  telemetry.listener(head);
  telemetry.listener(head);
  await until(() => warnings.length > 0 && telemetry.dropped["channel"] === 2);
  assert.equal(received.length, 2);
  assert.equal(warnings.length, 1);
});

test("two sinks of one kind are counted separately, and their drops are shown when metrics are collected", async () => {
  const stuck = {
    encode: (event: unknown) => event,
    write: () => new Promise<void>(() => undefined),
    close: async () => undefined,
  };
  const prometheus = await prometheusSink();
  const sinks = [new QueuedSink("jsonl", stuck, { maxQueued: 1 }), new QueuedSink("jsonl", stuck, { maxQueued: 3 })];
  const telemetry = createTelemetry({ sinks: [...sinks, prometheus] });
  for (let i = 0; i < 5; i += 1) telemetry.listener(head);
  assert.deepEqual(telemetry.dropped, { jsonl: 5, "jsonl-2": 3, prometheus: 0 });
  for (let scrape = 0; scrape < 2; scrape += 1) {
    const text = await prometheus.registry.metrics();
    assert.match(text, /docstokg_telemetry_dropped_total\{sink="jsonl"\} 5\n/);
    assert.match(text, /docstokg_telemetry_dropped_total\{sink="jsonl-2"\} 3\n/);
  }
});

test("events are frozen: what one listener or sink writes into an event does not reach another", async t => {
  const editing: Sink = {
    name: "editing",
    take: event => {
      Object.assign(event, { host: "edited" });
    },
  };
  const kept = keepingSink();
  const telemetry = createTelemetry({ sinks: [editing, kept] });
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t);
  hub.listen(event => {
    Reflect.set(event, "host", "edited");
  });
  hub.listen(telemetry.listener);
  await (await hub.fetch(server.origin)).text();
  assert.ok(kept.events.length > 4);
  assert.ok(!JSON.stringify(kept.events).includes("edited"));
  assert.equal(telemetry.dropped["editing"], kept.events.length, "an edit is an error of the sink");
});

test("every telemetry of a hub learns of each call, whichever of them traces it", async t => {
  const server = await serve(t, (_, response) => response.end());
  const started: string[] = [];
  const observerOf = (name: string) =>
    createTelemetry({ sinks: [{ name, take: () => undefined, callStarted: () => void started.push(name) }] });
  const tracer = { callStarted: () => void started.push("tracer") };
  const tracing = createTelemetry({ sinks: [{ name: "tracing", take: () => undefined, tracer }] });
  const [first, second] = [observerOf("first"), observerOf("second")];
  const hub = await hubFor(t, { telemetry: [first.listener, tracing.listener, second.listener] });
  await (await hub.fetch(server.origin)).text();
  assert.deepEqual(started, ["first", "second", "tracer"]);
  await first.close();
  await tracing.close();
  await (await hub.fetch(server.origin)).text();
  assert.deepEqual(started.slice(3), ["second"]);
});

test("events of two hubs on one telemetry carry the policy of their own hub", async t => {
  const server = await serve(t, (_, response) => response.end());
  const kept = keepingSink();
  const telemetry = createTelemetry({ sinks: [kept] });
  const first = await hubFor(t, { telemetry: [telemetry.listener] });
  const second = await hubFor(t, { telemetry: [telemetry.listener], breakers: { defaults: { fail_max: 2 } } });
  assert.notEqual(first.configHash, second.configHash);
  for (const hub of [first, second, first]) await (await hub.fetch(server.origin)).text();
  const hashes = (type: string) =>
    kept.events.filter(({ event_type }) => event_type === type).map(({ config_hash }) => config_hash);
  for (const type of ["http_request", "http_attempt", "ratelimit.acquire", "breaker_success"])
    assert.deepEqual(hashes(type), [first.configHash, second.configHash, first.configHash], type);
});

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { dispatchTo, RecordingHandler } from "../../test/http/handlers.ts";
import { heldServer, hubFor, ONE_A_SECOND_QUEUED, only, recordEvents, until } from "../../test/http/kit.ts";
import type { TelemetryEvent } from "../telemetry/events.ts";
import { RunTally } from "../telemetry/summary/run-tally.ts";
import { FakeTime } from "../testing/fake-time.ts";

test("the http_request event has the time in the queue and the total time", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, { time, cache: false, limits: ONE_A_SECOND_QUEUED });
  const events = recordEvents(hub);
  const first = hub.request(server.origin);
  await arrived(1);
  held[0]?.end();
  await (await first).body.text();
  const second = hub.request(server.origin);
  await time.advance(1000);
  await arrived(2);
  await time.advance(250);
  held[1]?.end();
  await (await second).body.text();
  assert.deepEqual(
    only(events, "http_request").map(({ rate_delay_ms, elapsed_ms, error }) => ({ rate_delay_ms, elapsed_ms, error })),
    [
      { rate_delay_ms: 0, elapsed_ms: 0, error: undefined },
      { rate_delay_ms: 1000, elapsed_ms: 1250, error: undefined },
    ],
  );
});

test("a wait for a slot that ends without a grant is a wait for a slot in the events and in the report", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "10/SECOND", max_concurrent: 1, guard_ms: 0 } } },
  });
  const events = recordEvents(hub);
  const first = hub.request(server.origin);
  await arrived(1);
  const controller = new AbortController();
  const aborted = assert.rejects(hub.request(server.origin, { signal: controller.signal }));
  const refused = assert.rejects(hub.request(server.origin, { maxWaitMs: 200 }), { code: "DOCSTOKG_BUSY" });
  await until(() => hub.snapshot().waiting === 2);
  await time.advance(300);
  controller.abort();
  await Promise.all([aborted, refused]);
  held[0]?.end();
  await (await first).body.text();
  assert.deepEqual(
    only(events, "http_request").map(event => [
      event.rate_delay_ms,
      event.rate_concurrency_wait_ms,
      event.unsent_wait_ms,
      event.unsent_slot_wait_ms,
    ]),
    [
      [200, 200, 200, 200],
      [300, 300, 300, 300],
      [0, 0, 0, 0],
    ],
  );
  const tally = new RunTally("run");
  for (const event of events) tally.take({ ...event, ts: 0, run_id: "run", config_hash: "" } as TelemetryEvent);
  assert.equal(tally.summary().hosts[0]?.slotWaitMs, 500);
});

test("the part of an unsent wait for a rate or a circuit is not a wait for a slot", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, {
    time,
    cache: false,
    retry: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", max_concurrent: 1, guard_ms: 0, max_delay_ms: 60_000 } } },
    breakers: { defaults: { fail_max: 1, reset_timeout_s: 60 } },
  });
  const events = recordEvents(hub);
  const first = hub.request(server.origin);
  await arrived(1);
  const abortAfter = async (ms: number) => {
    const controller = new AbortController();
    const aborted = assert.rejects(hub.request(server.origin, { maxWaitMs: 70_000, signal: controller.signal }));
    await until(() => hub.snapshot().waiting === 1);
    await time.advance(ms);
    controller.abort();
    await aborted;
  };
  held[0]?.end();
  await (await first).body.text();
  await abortAfter(700);
  await time.advance(300);
  const second = hub.request(server.origin);
  await arrived(2);
  // The rate admits the call after 1 s, and the slot is taken until the end.
  await abortAfter(1500);
  held[1]?.writeHead(500).end();
  await (await second).body.text();
  await abortAfter(2000);
  assert.deepEqual(
    only(events, "http_request")
      .filter(({ aborted }) => aborted)
      .map(event => [event.unsent_wait_ms, event.unsent_slot_wait_ms, event.breaker_wait_ms]),
    [
      [700, 0, 0],
      [1500, 500, 0],
      [2000, 0, 2000],
    ],
  );
});

test("the error field of http_request is the code, the name or the type of the error", async t => {
  const { server, hub, arrived } = await heldServer(t, { cache: false });
  const events = recordEvents(hub);
  const reasons = [Object.assign(new Error("x"), { code: "E_ENOUGH" }), new TypeError("x"), { why: "x" }, "x", null];
  for (const [index, reason] of reasons.entries()) {
    const { controller } = dispatchTo(hub, server.origin, new RecordingHandler());
    await arrived(index + 1);
    controller.abort(reason as Error);
  }
  assert.deepEqual(
    only(events, "http_request").map(({ error }) => error),
    ["E_ENOUGH", "TypeError", "Error", "string", "UND_ERR_ABORTED"],
  );
});

test("a problem with the cache becomes a process warning when there is no listener", async t => {
  const warnings: string[] = [];
  const listener = ({ name, message }: Error) => {
    if (name === "DocstokgWarning") warnings.push(message);
  };
  process.on("warning", listener);
  t.after(() => process.off("warning", listener));
  const file = join(import.meta.filename, "not-a-folder.db");
  const hub = await hubFor(t, { cache: `sqlite:${file}` });
  await until(() => warnings.length > 0);
  await hub.close();
  assert.equal(warnings.length, 1);
  assert.match(warnings.join(), /not-a-folder\.db/);
});

import assert from "node:assert/strict";
import { get } from "node:http";
import { type TestContext, test } from "node:test";
import { assertNothingLeft, hubFor, only, recordEvents, serve, until } from "../../test/http/kit.ts";
import type { HubEvent } from "./hub-options.ts";
import type { Tracer } from "./tracing.ts";

function fail(): never {
  throw new Error("api_key=hunter2 was refused");
}

function tracing(headers: readonly string[]): Tracer {
  return { callStarted: () => ({ attemptStarted: () => ({ headers, movedTo: fail, dropped: fail }) }) };
}

const BROKEN: Readonly<Record<string, Tracer>> = {
  "for the call": { callStarted: fail },
  "for the attempt": { callStarted: () => ({ attemptStarted: fail }) },
  "for the headers": {
    callStarted: () => ({
      attemptStarted: () => ({
        get headers() {
          return fail();
        },
        movedTo: fail,
        dropped: fail,
      }),
    }),
  },
};

async function sendWith(t: TestContext, tracer: Tracer) {
  const warnings: string[] = [];
  const onWarning = ({ message }: Error) => warnings.push(message);
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  const seen: (string | undefined)[] = [];
  const server = await serve(t, ({ headers }, response) => {
    seen.push(headers["traceparent"]?.toString());
    response.end("ok");
  });
  const hub = await hubFor(t, { telemetry: [Object.assign(() => undefined, { tracer })] });
  const events = recordEvents(hub);
  assert.equal(await (await hub.fetch(server.origin)).text(), "ok");
  const uninstall = hub.install();
  t.after(uninstall);
  await new Promise((resolve, reject) =>
    get(server.origin, response => response.resume().on("close", resolve)).on("error", reject),
  );
  await until(() => hub.snapshot().inFlight === 0);
  assertNothingLeft(hub);
  assert.deepEqual(
    only(events, "http_attempt").map(({ outcome }) => outcome),
    ["answered", "answered"],
  );
  await new Promise(resolve => setImmediate(resolve));
  return { seen, warnings };
}

for (const [when, tracer] of Object.entries(BROKEN))
  test(`a tracer that throws ${when} fails no call and keeps no slot; one warning without secrets is printed`, async t => {
    const { warnings } = await sendWith(t, tracer);
    assert.deepEqual(warnings, [
      "a tracer failed: api_key=… was refused; its calls are sent anyway, and its further errors are not reported",
    ]);
  });

test("header fields of a tracer that cannot be sent are left out, and the others are sent", async t => {
  const { seen, warnings } = await sendWith(t, tracing(["baggage", "a\nb", "bad name", "x", "traceparent", "00-1"]));
  assert.deepEqual(seen, ["00-1", "00-1"]);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /^a tracer failed: the header field "baggage" or its value cannot be sent;/);
});

test("a listener that is added twice gets each event and traces each call once, until it is removed", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { cache: false });
  const types: string[] = [];
  const started: string[] = [];
  const tracer: Tracer = { callStarted: ({ callId }) => void started.push(callId) };
  const listener = Object.assign(({ event_type }: HubEvent) => void types.push(event_type), { tracer });
  hub.listen(listener);
  const stop = hub.listen(listener);
  const count = (type: string) => types.filter(seen => seen === type).length;
  await (await hub.fetch(server.origin)).text();
  assert.deepEqual([count("policy_loaded"), count("http_request"), started.length], [1, 1, 1]);
  stop();
  await (await hub.fetch(server.origin)).text();
  assert.deepEqual([count("http_request"), started.length], [1, 1]);
  hub.listen(listener);
  await (await hub.fetch(server.origin)).text();
  assert.deepEqual([count("policy_loaded"), count("http_request"), started.length], [2, 2, 2]);
});

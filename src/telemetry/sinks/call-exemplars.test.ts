import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { context, ROOT_CONTEXT, trace } from "@opentelemetry/api";
import { Registry } from "prom-client";
import { hubFor, serve } from "../../../test/http/kit.ts";
import { StorageContextManager } from "../../../test/telemetry/context-manager.ts";
import { createTelemetry } from "../telemetry.ts";
import { otelSink } from "./otel-sink.ts";
import { prometheusSink } from "./prometheus-sink.ts";

async function setUp(t: TestContext, isTraced = false) {
  context.setGlobalContextManager(new StorageContextManager());
  const sink = await prometheusSink({ exemplars: true });
  const telemetry = createTelemetry({ sinks: [sink, ...(isTraced ? [await otelSink()] : [])] });
  const hub = await hubFor(t, { cache: false, telemetry: [telemetry.listener] });
  t.after(async () => {
    await telemetry.close();
    context.disable();
  });
  /** Runs `work` in a span of this trace. */
  const within = <Result>(traceId: string, work: () => Result, traceFlags = 1): Result => {
    const span = trace.wrapSpanContext({ traceId, spanId: "00f067aa0ba902b7", traceFlags });
    return context.with(trace.setSpan(ROOT_CONTEXT, span), work);
  };
  const exemplars = async () =>
    [...(await sink.registry.metrics()).matchAll(/^docstokg_http_attempt_seconds_bucket.*# \{(.*?)\}/gm)].map(
      ([, labels]) => labels,
    );
  return { hub, sink, within, exemplars };
}

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";

test("a histogram has the trace of the span that was active in the caller, not that of its connection", async t => {
  const { origin } = await serve(t, (_, response) => response.end("ok"));
  const { hub, sink, within, exemplars } = await setUp(t);
  // The connection is opened in another trace, and is used again.
  await within("1".repeat(32), async () => (await hub.fetch(origin, { role: "landing" })).text());
  await within(TRACE, async () => (await hub.fetch(origin)).text());
  const found = await exemplars();
  assert.deepEqual(
    new Set(found),
    new Set([
      `trace_id="${"1".repeat(32)}",span_id="00f067aa0ba902b7"`,
      `trace_id="${TRACE}",span_id="00f067aa0ba902b7"`,
    ]),
  );
  const ofMetadata = (await sink.registry.metrics())
    .split("\n")
    .filter(line => line.includes('role="metadata"') && line.includes("# {"));
  assert.ok(ofMetadata.length > 0 && ofMetadata.every(line => line.includes(TRACE)));
  assert.match(await sink.registry.metrics(), /# EOF\n$/, "exemplars are part of OpenMetrics only");
});

test("a call without an active span, or in a trace that is not sampled, has no exemplar", async t => {
  const { origin } = await serve(t, (_, response) => response.end("ok"));
  const { hub, within, exemplars } = await setUp(t);
  await (await hub.fetch(origin)).text();
  await within(TRACE, async () => (await hub.fetch(origin)).text(), 0);
  assert.deepEqual(await exemplars(), []);
});

test("exemplars work beside a sink that makes spans, in any order", async t => {
  const { origin, requests } = await serve(t, (_, response) => response.end("ok"));
  const { hub, within, exemplars } = await setUp(t, true);
  await within(TRACE, async () => (await hub.fetch(origin)).text());
  assert.equal((await exemplars())[0]?.includes(TRACE), true);
  assert.match(String(requests[0]?.headers["traceparent"]), new RegExp(`^00-${TRACE}-`));
});

test("a registry without the content type of OpenMetrics is refused", async () => {
  await assert.rejects(prometheusSink({ registry: new Registry(), exemplars: true }), {
    name: "RangeError",
    message: /^exemplars need a registry with the content type application\/openmetrics-text/,
  });
});

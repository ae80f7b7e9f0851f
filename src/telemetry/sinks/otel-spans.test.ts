import assert from "node:assert/strict";
import { once } from "node:events";
import http, { type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { context, diag, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { hubFor, serve, type TestHubOptions, until } from "../../../test/http/kit.ts";
import { StorageContextManager } from "../../../test/telemetry/context-manager.ts";
import { call, START_MS } from "../../../test/telemetry/kit.ts";
import { createTelemetry } from "../telemetry.ts";
import { type OtelSinkOptions, otelSink } from "./otel-sink.ts";

/** A registered SDK whose spans are kept, and a hub whose telemetry has an OpenTelemetry sink. */
async function traced(t: TestContext, options: TestHubOptions & { readonly otel?: OtelSinkOptions } = {}) {
  const { otel, ...hubOptions } = options;
  const exporter = new InMemorySpanExporter();
  const processor = new SimpleSpanProcessor(exporter);
  const started = t.mock.method(processor, "onStart").mock;
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [processor] }));
  context.setGlobalContextManager(new StorageContextManager());
  const telemetry = createTelemetry({ sinks: [await otelSink(otel)] });
  const hub = await hubFor(t, { ...hubOptions, telemetry: [telemetry.listener] });
  t.after(async () => {
    await telemetry.close();
    trace.disable();
    context.disable();
    propagation.disable();
  });
  const spans = () => exporter.getFinishedSpans();
  const calls = () => spans().filter(({ kind, name }) => kind === SpanKind.INTERNAL && name.startsWith("docstokg "));
  const attempts = () => spans().filter(({ kind }) => kind === SpanKind.CLIENT);
  return { hub, telemetry, spans, calls, attempts, started: () => started.callCount() };
}

test("each call belongs to the span in which it was made, however the calls end", async t => {
  const held: ServerResponse[] = [];
  const server = await serve(t, (_, response) => {
    held.push(response);
    // The first ones are answered last.
    if (held.length === 9) for (const one of held.reverse()) one.end("ok");
  });
  const { hub, calls, attempts } = await traced(t, { cache: false });
  const tracer = trace.getTracer("test");
  const expected = await Promise.all(
    Array.from({ length: 9 }, async (_, index) => {
      const parent = tracer.startSpan(`caller ${index}`);
      const { traceId, spanId } = parent.spanContext();
      await context.with(trace.setSpan(context.active(), parent), async () => {
        if (index % 2 === 0) await (await hub.fetch(`${server.origin}/${index}`)).text();
        else await (await hub.request(`${server.origin}/${index}`)).body.text();
      });
      parent.end();
      return `${traceId} ${spanId}`;
    }),
  );
  await until(() => calls().length === 9);
  const parents = calls().map(span => `${span.spanContext().traceId} ${span.parentSpanContext?.spanId}`);
  assert.deepEqual(new Set(parents), new Set(expected));
  assert.equal(new Set(expected).size, 9);
  for (const attempt of attempts())
    assert.ok(calls().some(call => call.spanContext().spanId === attempt.parentSpanContext?.spanId));
});

test("each attempt is a client span below its call, and its host gets its traceparent and tracestate", async t => {
  const server = await serve(t, (_, response, number) => response.writeHead(number === 1 ? 503 : 200).end());
  const { hub, calls, attempts } = await traced(t, { cache: false, retry: { baseMs: 1 } });
  await (await hub.request(server.origin)).body.text();
  await until(() => calls().length === 1);
  const [call] = calls();
  assert.deepEqual(
    attempts().map(({ name, status, attributes, parentSpanContext }) => [
      name,
      status.code,
      attributes["http.response.status_code"],
      attributes["error.type"],
      attributes["http.request.resend_count"],
      attributes["docstokg.cause"],
      parentSpanContext?.spanId === call?.spanContext().spanId,
    ]),
    [
      ["GET", SpanStatusCode.ERROR, 503, "503", undefined, "call", true],
      ["GET", SpanStatusCode.UNSET, 200, undefined, 1, "retry", true],
    ],
  );
  assert.deepEqual(
    server.requests.map(({ headers }) => headers["traceparent"]),
    attempts().map(span => `00-${span.spanContext().traceId}-${span.spanContext().spanId}-01`),
  );
  const [first] = attempts();
  assert.equal(first?.attributes["server.address"], "127.0.0.1");
  assert.equal(first?.attributes["server.port"], server.port);
  assert.equal(first?.attributes["url.full"], `${server.origin}/REDACTED`);
  assert.deepEqual(
    call?.events.map(({ name, attributes }) => [name, attributes?.["docstokg.wait.reason"]]),
    [["docstokg.wait", "retry"]],
  );
  assert.equal(call?.status.code, SpanStatusCode.UNSET);
});

test("the registered propagator writes the headers; a header of the caller is kept; propagate: false sends none", async t => {
  const server = await serve(t, (_, response) => response.end());
  propagation.setGlobalPropagator({
    fields: () => ["x-trace"],
    extract: from => from,
    inject: (from, carrier, setter) => setter.set(carrier, "X-Trace", trace.getSpanContext(from)?.spanId ?? ""),
  });
  const { hub, attempts } = await traced(t, { cache: false });
  await (await hub.request(server.origin)).body.text();
  await (await hub.request(server.origin, { headers: { "X-TRACE": "mine" } })).body.text();
  assert.deepEqual(
    server.requests.map(({ headers }) => [headers["x-trace"], headers["traceparent"]]),
    [
      [attempts()[0]?.spanContext().spanId, undefined],
      ["mine", undefined],
    ],
  );
  const silent = await hubFor(t, {
    telemetry: [createTelemetry({ sinks: [await otelSink({ propagate: false })] }).listener],
  });
  await (await silent.request(server.origin)).body.text();
  assert.equal(server.requests[2]?.headers["x-trace"], undefined);
});

test("a request of node:http has the same spans, and its host gets the traceparent of its attempt", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const { hub, calls, attempts } = await traced(t, {
    limits: { defaults: { metadata: { rates: "1/HOUR", max_delay_ms: 0 } } },
  });
  const agents = hub.agents();
  t.after(() => agents.http.destroy());
  const [response] = await once(http.get(server.origin, { agent: agents.http }), "response");
  assert.equal(await text(response), "ok");
  await assert.rejects(once(http.get(server.origin, { agent: agents.http }), "response"), /rate limit/);
  await until(() => calls().length === 2);
  const [attempt] = attempts();
  assert.equal(attempts().length, 1);
  assert.equal(attempt?.parentSpanContext?.spanId, calls()[0]?.spanContext().spanId);
  const { traceId, spanId } = attempt?.spanContext() ?? {};
  assert.deepEqual(
    server.requests.map(({ headers }) => headers["traceparent"]),
    [`00-${traceId}-${spanId}-01`],
  );
});

test("a body that its caller cancels, a 404 and a cache hit do not make a call an error", async t => {
  const server = await serve(t, (request, response) => {
    if (request.url === "/endless") response.write("the beginning");
    else if (request.url === "/404") response.writeHead(404).end();
    else response.setHeader("cache-control", "max-age=60").end();
  });
  const { hub, calls } = await traced(t);
  await (await hub.fetch(`${server.origin}/endless`)).body?.cancel();
  await (await hub.fetch(`${server.origin}/404`)).text();
  for (let i = 0; i < 2; i += 1) await (await hub.fetch(`${server.origin}/hit`)).text();
  await until(() => calls().length === 4);
  assert.deepEqual(
    calls().map(({ status, attributes }) => [
      status.code,
      attributes["docstokg.outcome"],
      attributes["docstokg.attempts"],
    ]),
    [
      [SpanStatusCode.UNSET, "aborted", 1],
      [SpanStatusCode.UNSET, "answered", 1],
      [SpanStatusCode.UNSET, "answered", 1],
      [SpanStatusCode.UNSET, "cached", 0],
    ],
  );
});

test("a background refresh has a span of its own in the trace of the call that caused it", async t => {
  const server = await serve(t, (_, response) =>
    response.setHeader("cache-control", "max-age=0, stale-while-revalidate=600").end("x"),
  );
  const { hub, calls } = await traced(t);
  await (await hub.fetch(server.origin)).text();
  await (await hub.fetch(server.origin)).text();
  await until(() => calls().length === 3);
  assert.equal(calls().filter(({ attributes }) => attributes["docstokg.background"] === true).length, 1);
});

test("a span whose start was not seen has the time of its event", async t => {
  const { spans } = await traced(t);
  (await otelSink()).take(call(2000, "a.example", { elapsed_ms: 1500 }));
  const [span] = spans();
  const ms = ([seconds, nanos]: [number, number]) => seconds * 1000 + nanos / 1e6 - START_MS;
  assert.ok(span !== undefined);
  assert.deepEqual([ms(span.startTime), ms(span.endTime)], [500, 2000]);
});

test("closing ends the span of a call that has ended only once, also if one of its attempts is in flight", async t => {
  const { attempts } = await traced(t);
  const errors: string[] = [];
  const ignore = () => undefined;
  diag.setLogger({ error: text => errors.push(text), warn: ignore, info: ignore, debug: ignore, verbose: ignore });
  t.after(() => diag.disable());
  const sink = await otelSink();
  const ended = call(2000, "a.example");
  const origin = "https://a.example";
  const started = { callId: ended.call_id, method: "GET", host: "a.example", origin, isBackground: false };
  const attempt = { attempt: 1, method: "GET", origin };
  sink.tracer?.callStarted(started)?.attemptStarted(attempt);
  sink.take(ended);
  await sink.close?.();
  assert.deepEqual(errors, []);
  assert.equal(attempts().length, 1);
});

test("once the telemetry closes, no call and no retry starts a span or sends a traceparent", async t => {
  const held = Promise.withResolvers<ServerResponse>();
  const server = await serve(t, (_, response, number) => {
    if (number === 1) held.resolve(response);
    else response.end();
  });
  const { hub, telemetry, spans, started } = await traced(t, { cache: false, retry: { baseMs: 1 } });
  const retried = hub.request(server.origin);
  const response = await held.promise;
  await telemetry.close();
  response.writeHead(503).end();
  await (await retried).body.text();
  await (await hub.request(server.origin)).body.text();
  assert.deepEqual(
    server.requests.map(({ headers }) => headers["traceparent"] !== undefined),
    [true, false, false],
  );
  // The call and its first attempt, which the close has ended.
  assert.deepEqual([started(), spans().length], [2, 2]);
});

test("a sink that is closed traces no call, also without a telemetry", async t => {
  const { started } = await traced(t);
  const sink = await otelSink();
  await sink.close?.();
  const origin = "https://a.example";
  const traceOfCall = sink.tracer?.callStarted({
    callId: "1",
    method: "GET",
    host: "a.example",
    origin,
    isBackground: false,
  });
  assert.deepEqual([traceOfCall, started()], [undefined, 0]);
});

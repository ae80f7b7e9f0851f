import { DatabaseSync } from "node:sqlite";
import { SpanKind } from "@opentelemetry/api";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";
import type { HubSnapshot } from "../../../src/http/hub.ts";
import { callOutcomeOf } from "../../../src/telemetry/call-outcome.ts";
import type { EventOf, EventType, TelemetryEvent } from "../../../src/telemetry/events.ts";
import { openTelemetryFile } from "../../../src/telemetry/reading/telemetry-file.ts";
import type { RunSummary } from "../../../src/telemetry/summary/run-summary.ts";
import { summarize } from "../../../src/telemetry/summary/run-tally.ts";
import { type CallerLedger, count } from "./ledger-calls.ts";
import { DEAD_HOST, HOSTS } from "./ledger-script.ts";
import type { SeenRequest } from "./ledger-server.ts";

/** Everything that recorded the calls of one batch. */
export interface Ledger {
  readonly caller: CallerLedger;
  readonly seen: readonly SeenRequest[];
  readonly events: readonly TelemetryEvent[];
  /** The text of Prometheus. */
  readonly metrics: string;
  readonly spans: readonly ReadableSpan[];
  /** The SQLite file. */
  readonly file: string;
  readonly snapshot: HubSnapshot;
}

/** One quantity, with its value in each record that has it. */
type ComparedQuantity = readonly [what: string, ...values: (readonly [record: string, value: number])[]];

/** Compares the values of all records. Returns the quantities that differ. */
export async function ledgerProblems(ledger: Ledger): Promise<readonly string[]> {
  const opened = await openTelemetryFile(ledger.file);
  const report = await summarize(opened.events("ledger"), "ledger");
  opened.close();
  const db = new DatabaseSync(ledger.file, { readOnly: true });
  const entries = [...HOSTS, DEAD_HOST].flatMap(host => hostEntries(host, ledger, report, db));
  entries.push(...totalEntries(ledger, report, db));
  db.close();
  return [...entries.flatMap(differences), ...callProblems(ledger), ...spanProblems(ledger)];
}

function hostEntries(host: string, ledger: Ledger, report: RunSummary, db: DatabaseSync): readonly ComparedQuantity[] {
  const { events, seen, metrics, spans, snapshot, caller } = ledger;
  const attempts = of(events, "http_attempt").filter(event => event.host === host);
  const sent = attempts.filter(({ connection }) => connection !== "none");
  const requests = seen.filter(request => request.host === host);
  const row = report.hosts.find(one => one.host === host);
  const key = report.keys.find(one => one.key === host);
  const shown = snapshot.keys.find(one => one.key === host);
  const sql = (query: string) => Number(Object.values(db.prepare(query).get(host) ?? { none: 0 })[0]);
  const clients = clientSpans(spans).filter(({ attributes }) => attributes["server.address"] === host);
  const withStatus = (status: number): ComparedQuantity => [
    `${host}: responses with ${status}`,
    ["server", requests.filter(request => request.status === status).length],
    ["events", attempts.filter(event => event.status === status).length],
    ["sqlite", sql(`SELECT count(*) FROM http_attempts WHERE host = ? AND status = ${status}`)],
    ["spans", clients.filter(({ attributes }) => attributes["http.response.status_code"] === status).length],
    ...(status === 429 || status === 503
      ? ([
          ["metrics", metric(metrics, `http_${status}_total`, { host })],
          ["report", (status === 429 ? row?.answers429 : row?.answers503) ?? 0],
        ] as const)
      : []),
  ];
  const acquired = of(events, "ratelimit.acquire").filter(event => event.key === host);
  const recorded = (kind: string) => attempts.filter(({ breaker_recorded }) => breaker_recorded === kind).length;
  const waitedMs = sum(attempts, queueMs);
  return [
    [
      `${host}: requests`,
      ["server", requests.length],
      ["events", sent.length],
      ["sqlite", sql(`SELECT count(*) FROM http_attempts WHERE host = ? AND connection <> 'none'`)],
      ["metrics", metric(metrics, "http_attempts_total", { host })],
      ["spans", clients.filter(({ attributes }) => attributes["docstokg.connection"] !== "none").length],
      ["report", row?.attempts ?? 0],
    ],
    [
      `${host}: attempts without a connection`,
      ["events", attempts.length - sent.length],
      ["metrics", metric(metrics, "http_connect_failures_total", { host })],
      ["report", row?.connectFailures ?? 0],
      ["spans", clients.filter(({ attributes }) => attributes["docstokg.connection"] === "none").length],
    ],
    [
      `${host}: connections`,
      ["server", requests.filter(({ isNewConnection }) => isNewConnection).length],
      ["events", sent.filter(({ connection }) => connection === "new").length],
    ],
    [
      `${host}: HEAD requests`,
      ["server", requests.filter(({ method }) => method === "HEAD").length],
      ["events", sent.filter(({ method }) => method === "HEAD").length],
    ],
    ...[200, 302, 304, 404, 429, 500, 503].map(withStatus),
    [
      `${host}: calls that were made`,
      ["callers", caller.calls.get(host) ?? 0],
      ["events", calls(events).filter(event => event.host === host).length],
      [
        "sqlite",
        sql("SELECT count(*) FROM http_events WHERE host = ? AND event_type = 'http_request' AND background = 0"),
      ],
      ["spans", callSpans(spans).filter(({ attributes }) => attributes["server.address"] === host).length],
    ],
    [
      `${host}: calls that ended here`,
      ["events", calls(events).filter(event => event.final_host === host).length],
      ["metrics", metric(metrics, "http_requests_total", { host })],
      ["report", row?.calls ?? 0],
    ],
    [
      `${host}: grants`,
      ["events", acquired.filter(({ outcome, weight }) => outcome === "granted" && weight > 0).length],
      ["metrics", metric(metrics, "rate_acquired_total", { host })],
      ["report", key?.acquired ?? 0],
      ["snapshot", shown?.acquired ?? 0],
    ],
    [
      `${host}: refusals of the limiter`,
      ["events", acquired.filter(({ outcome }) => outcome === "refused").length],
      ["metrics", metric(metrics, "rate_blocked_total", { host })],
      ["report", key?.blocked ?? 0],
      ["snapshot", shown?.refused ?? 0],
    ],
    [
      `${host}: failures that the breaker recorded`,
      ["attempts", recorded("failure")],
      ["breaker events", of(events, "breaker_failure").filter(event => event.host === host).length],
    ],
    [
      `${host}: successes that the breaker recorded`,
      ["attempts", recorded("success")],
      ["breaker events", of(events, "breaker_success").filter(event => event.host === host).length],
    ],
    [
      `${host}: waits in ms`,
      [
        "events",
        waitedMs +
          sum(
            of(events, "http_request").filter(event => event.final_host === host),
            unsentMs,
          ),
      ],
      ["report", row?.delayMs.total ?? 0],
      ["metrics", metric(metrics, "rate_delay_seconds_sum", { host }) * 1000],
    ],
  ];
}

function totalEntries(ledger: Ledger, report: RunSummary, db: DatabaseSync): readonly ComparedQuantity[] {
  const { events, metrics, caller, spans } = ledger;
  const all = of(events, "http_request");
  const attempts = of(events, "http_attempt");
  const statuses = (text: string) => caller.cacheStatuses.get(`docstokg; ${text}`) ?? 0;
  const cached = (result: string) => metric(metrics, "http_cache_total", { result });
  return [
    [
      "waits in ms",
      ["calls", sum(all, event => event.rate_delay_ms)],
      ["attempts and waits without one", sum(attempts, queueMs) + sum(all, unsentMs)],
    ],
    [
      "background refreshes",
      ["events", all.filter(({ background }) => background).length],
      ["report", report.refreshes],
      ["metrics", metric(metrics, "http_refreshes_total", {})],
      ["spans", spans.filter(({ attributes }) => attributes["docstokg.background"] === true).length],
    ],
    [
      "calls refused by breakers",
      ["events", calls(events).filter(({ error }) => error === "DOCSTOKG_BREAKER_OPEN").length],
      ["metrics", metric(metrics, "breaker_denied_total", {})],
      ["report", report.breaker.denied],
    ],
    [
      "fresh responses from the cache",
      ["callers", statuses("hit")],
      ["metrics, with redirects to them", cached("hit") + freshAfterRedirects(events)],
      ["report, with redirects to them", report.cache.hits - report.cache.stale + freshAfterRedirects(events)],
    ],
    ["revalidated responses", ["callers", statuses("fwd=stale; fwd-status=304")], ["metrics", cached("revalidated")]],
    [
      "circuits and cooldowns opened",
      ["report", report.breaker.opens],
      ["metrics", metric(metrics, "breaker_open_total", {})],
    ],
    ["events", ["taken", events.length], ["sqlite", eventCount(db)]],
  ];
}

/** Each call: the number of its attempts and their numbers, and an end. */
function callProblems({ events }: Ledger): readonly string[] {
  const problems: string[] = [];
  const sent = new Map<string, number>();
  const numbers = new Map<string, number[]>();
  const lastHosts = new Map<string, string>();
  for (const { call_id, connection, attempt, host } of of(events, "http_attempt")) {
    lastHosts.set(call_id, host);
    if (connection !== "none") count(sent, call_id);
    numbers.set(call_id, [...(numbers.get(call_id) ?? []), attempt]);
  }
  const ids = new Set<string>();
  for (const event of of(events, "http_request")) {
    if (ids.has(event.call_id)) problems.push(`call ${event.call_id} has two http_request events`);
    ids.add(event.call_id);
    if (event.attempts !== (sent.get(event.call_id) ?? 0))
      problems.push(`call ${event.call_id} has ${event.attempts} attempts, its events ${sent.get(event.call_id) ?? 0}`);
    const endedByServer = event.status !== undefined && !event.from_cache && !event.coalesced && event.attempts > 0;
    if (endedByServer && event.final_host !== lastHosts.get(event.call_id))
      problems.push(
        `call ${event.call_id} ended at ${event.final_host}, its last attempt at ${lastHosts.get(event.call_id)}`,
      );
    const isUnsent = event.attempts === 0 && !event.coalesced;
    if (isUnsent && ["answered", "throttled"].includes(callOutcomeOf(event)))
      problems.push(`call ${event.call_id} was ${callOutcomeOf(event)} without an attempt`);
  }
  for (const [id, own] of numbers) {
    if (!ids.has(id)) problems.push(`attempts of call ${id}, which has no http_request`);
    const expected = own.map((_, index) => index + 1);
    if (own.toSorted((a, b) => a - b).join() !== expected.join()) problems.push(`call ${id} has attempts ${own}`);
  }
  return problems;
}

/** Each attempt is below the span of its call, and the request with its traceparent had the same status. */
function spanProblems({ spans, seen }: Ledger): readonly string[] {
  const callIds = new Set(callSpans(spans, true).map(span => span.spanContext().spanId));
  const requests = new Map(seen.map(request => [request.traceparent, request]));
  const problems: string[] = [];
  for (const span of clientSpans(spans)) {
    const { attributes, parentSpanContext } = span;
    const { traceId, spanId } = span.spanContext();
    const request = requests.get(`00-${traceId}-${spanId}-01`);
    const status = attributes["http.response.status_code"];
    if (!callIds.has(parentSpanContext?.spanId ?? "")) problems.push(`span ${spanId} has no call above it`);
    if ((request === undefined) !== (attributes["docstokg.connection"] === "none"))
      problems.push(`the requests with the traceparent of span ${spanId} are not as many as it has sent`);
    if (request?.status !== status)
      problems.push(`${request?.method} ${request?.path}: answered ${request?.status}, its span has ${status}`);
  }
  return problems;
}

function differences([what, ...values]: ComparedQuantity): readonly string[] {
  const [first] = values;
  const isSame = values.every(([, value]) => Math.abs(value - (first?.[1] ?? 0)) < 1e-3);
  return isSame ? [] : [`${what}: ${values.map(([record, value]) => `${record} ${value}`).join(", ")}`];
}

/** The sum over all series of a metric that have these labels. */
function metric(text: string, name: string, labels: Readonly<Record<string, string>>): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  let total = 0;
  for (const line of text.split("\n")) {
    if (!line.startsWith(`docstokg_${name}{`) && !line.startsWith(`docstokg_${name} `)) continue;
    if (wanted.every(label => line.includes(label))) total += Number(line.slice(line.lastIndexOf(" ")));
  }
  return total;
}

function eventCount(db: DatabaseSync): number {
  const tables = ["http_events", "http_attempts", "rate_events", "breaker_transitions", "breaker_calls", "run_events"];
  return sum(tables, table => Number(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.["n"]));
}

function of<Type extends EventType>(events: readonly TelemetryEvent[], type: Type): readonly EventOf<Type>[] {
  return events.filter((event): event is EventOf<Type> => event.event_type === type);
}

function calls(events: readonly TelemetryEvent[]): readonly EventOf<"http_request">[] {
  return of(events, "http_request").filter(({ background }) => !background);
}

function callSpans(spans: readonly ReadableSpan[], withRefreshes = false): readonly ReadableSpan[] {
  return spans.filter(
    ({ kind, attributes }) =>
      kind === SpanKind.INTERNAL && (withRefreshes || attributes["docstokg.background"] !== true),
  );
}

function clientSpans(spans: readonly ReadableSpan[]): readonly ReadableSpan[] {
  return spans.filter(({ kind }) => kind === SpanKind.CLIENT);
}

/** A redirect led to a fresh stored response: the caller sees a hit, but a request was sent. */
function freshAfterRedirects(events: readonly TelemetryEvent[]): number {
  return calls(events).filter(
    ({ from_cache, stale, revalidated, attempts }) => from_cache && !stale && !revalidated && attempts > 0,
  ).length;
}

function queueMs(event: EventOf<"http_attempt">): number {
  return event.rate_wait_ms + event.slot_wait_ms + event.breaker_wait_ms + event.jitter_wait_ms;
}

function unsentMs(event: EventOf<"http_request">): number {
  return event.unsent_wait_ms;
}

function sum<Item>(items: readonly Item[], read: (item: Item) => number): number {
  return items.reduce((total, item) => total + read(item), 0);
}

import { DatabaseSync } from "node:sqlite";
import type { EventOf, TelemetryEvent } from "../../../src/telemetry/events.ts";
import { openTelemetryFile } from "../../../src/telemetry/reading/telemetry-file.ts";
import type { RunSummary } from "../../../src/telemetry/summary/run-summary.ts";
import { summarize } from "../../../src/telemetry/summary/run-tally.ts";
import { callProblems, spanProblems } from "./call-checks.ts";
import { callSpans, calls, clientSpans, eventsOfType, type Ledger, metric } from "./ledger-records.ts";
import { DEAD_HOST, HOSTS } from "./ledger-script.ts";

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
  const attempts = eventsOfType(events, "http_attempt").filter(event => event.host === host);
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
  const acquired = eventsOfType(events, "ratelimit.acquire").filter(event => event.key === host);
  const recorded = (kind: string) => attempts.filter(({ breaker_recorded }) => breaker_recorded === kind).length;
  const ended = eventsOfType(events, "http_request").filter(event => event.final_host === host);
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
      ["breaker events", eventsOfType(events, "breaker_failure").filter(event => event.host === host).length],
    ],
    [
      `${host}: successes that the breaker recorded`,
      ["attempts", recorded("success")],
      ["breaker events", eventsOfType(events, "breaker_success").filter(event => event.host === host).length],
    ],
    [
      `${host}: waits in ms`,
      ["events", sum(attempts, queueMs) + sum(ended, event => event.unsent_wait_ms)],
      ["report", row?.delayMs.total ?? 0],
      ["metrics", metric(metrics, "rate_delay_seconds_sum", { host }) * 1000],
    ],
    [
      `${host}: waits for slots in ms`,
      ["events", sum(attempts, event => event.slot_wait_ms) + sum(ended, event => event.unsent_slot_wait_ms)],
      ["report", row?.slotWaitMs ?? 0],
      ["metrics", metric(metrics, "rate_concurrency_wait_seconds_sum", { host }) * 1000],
    ],
  ];
}

function totalEntries(ledger: Ledger, report: RunSummary, db: DatabaseSync): readonly ComparedQuantity[] {
  const { events, metrics, caller, spans } = ledger;
  const all = eventsOfType(events, "http_request");
  const attempts = eventsOfType(events, "http_attempt");
  const statuses = (text: string) => caller.cacheStatuses.get(`docstokg; ${text}`) ?? 0;
  const cached = (result: string) => metric(metrics, "http_cache_total", { result });
  return [
    [
      "waits in ms",
      ["calls", sum(all, event => event.rate_delay_ms)],
      ["attempts and waits without one", sum(attempts, queueMs) + sum(all, event => event.unsent_wait_ms)],
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

function differences([what, ...values]: ComparedQuantity): readonly string[] {
  const [first] = values;
  const isSame = values.every(([, value]) => Math.abs(value - (first?.[1] ?? 0)) < 1e-3);
  return isSame ? [] : [`${what}: ${values.map(([record, value]) => `${record} ${value}`).join(", ")}`];
}

function eventCount(db: DatabaseSync): number {
  const tables = ["http_events", "http_attempts", "rate_events", "breaker_transitions", "breaker_calls", "run_events"];
  return sum(tables, table => Number(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.["n"]));
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

function sum<Item>(items: readonly Item[], read: (item: Item) => number): number {
  return items.reduce((total, item) => total + read(item), 0);
}

import { EVENT_SPECS } from "../../src/telemetry/event-fields.ts";
import type { FieldSpec } from "../../src/telemetry/fields/event-spec.ts";
import { exportedName, METRICS, type MetricName, type MetricSpec } from "../../src/telemetry/metrics.ts";
import { NUMBER_DEFINITIONS } from "../../src/telemetry/report/definitions.ts";
import { TABLE_OF } from "../../src/telemetry/sqlite-tables.ts";
import { code, page, table } from "./markdown.ts";

/** `docs/reference/events.md`: every event with its fields. */
export function eventsPage(): string {
  const specs = Object.entries(EVENT_SPECS) as [keyof typeof EVENT_SPECS, { about: string; fields: object }][];
  return page(
    "Events",
    "Every event has `ts` (epoch milliseconds), `event_type`, `run_id` and `config_hash`; a line of JSONL begins with them. `config_hash` is a hash of the policy (`hub.configHash`): equal policies have equal hashes, and a reload may change it. An optional field is absent when it has no value.",
    "One in a hundred `breaker_before_call` events is recorded (`sampleBeforeCall`), and every refusal. No other event is sampled. [The guide](../guides/telemetry.md) describes sinks and the report.",
    ...specs.map(([type, { about, fields }]) => {
      const rows = (Object.entries(fields) as [string, FieldSpec][]).map(([name, [kind, words]]) => [
        code(name),
        kind.replace("?", ", optional"),
        words,
      ]);
      const fieldTable = rows.length === 0 ? "" : `\n\n${table(["field", "kind", "meaning"], rows)}`;
      return `## ${code(type)}\n\n${about} In SQLite: ${code(TABLE_OF[type])}.${fieldTable}`;
    }),
  );
}

/** `docs/reference/metrics.md`: every metric, and every number of the report. */
export function metricsPage(): string {
  const metrics = Object.entries(METRICS) as [MetricName, MetricSpec][];
  return page(
    "Metrics and report numbers",
    "## Metrics",
    'All names begin with `docstokg_`; `prometheusSink({ prefix: "harvest_" })` and `otelSink({ prefix })` replace it. Beyond 1000 hosts the label `host` is `(other)`; partitions have the label of their host. The buckets of the histograms are from 1 ms to five minutes.',
    table(
      ["metric", "kind", "labels", "meaning"],
      metrics.map(([name, { kind, labels, about }]) => [
        code(exportedName(name)),
        kind,
        labels.map(code).join(", "),
        about,
      ]),
    ),
    "## Numbers of the report",
    "Every number of `docstokg report`, by its path in the JSON. Tests compute each of them by hand from its definition.",
    table(
      ["number", "definition"],
      Object.entries(NUMBER_DEFINITIONS).map(([path, about]) => [code(path), about]),
    ),
    "Beyond 20,000 hosts and roles the rest is one row for each role, and beyond 256 hosts the rest is one chart. Telemetry of version 0.1 has no `http_attempt` events: its report counts calls, but no requests and no waits.",
  );
}

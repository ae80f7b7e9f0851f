/** The shipped Grafana dashboard and alert rules, compared with the metrics that exist. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { exportedName, METRICS, type MetricName, type MetricSpec } from "../../src/telemetry/metrics.ts";

const folder = resolve(import.meta.dirname, "../../configs/monitoring");
const dashboard = JSON.parse(readFileSync(join(folder, "grafana-dashboard.json"), "utf8"));
const alerts = parse(readFileSync(join(folder, "alerts.yaml"), "utf8"));

interface Target {
  readonly expr: string;
  readonly legendFormat: string;
}

const targets: readonly Target[] = dashboard.panels.flatMap((panel: { targets: Target[] }) => panel.targets);
const rules: readonly { alert: string; expr: string; annotations: Record<string, string> }[] = alerts.groups.flatMap(
  (group: { rules: object[] }) => group.rules,
);

/** The series of each metric in the text format of Prometheus, with the labels that they have. */
const series = new Map(
  (Object.entries(METRICS) as [MetricName, MetricSpec][]).flatMap(([name, { kind, labels }]) => {
    const exported = exportedName(name);
    if (kind !== "histogram") return [[exported, labels] as const];
    return [
      [`${exported}_bucket`, [...labels, "le"]] as const,
      [`${exported}_sum`, labels] as const,
      [`${exported}_count`, labels] as const,
    ];
  }),
);
/** Prometheus adds these itself. */
const TARGET_LABELS = ["job", "instance"];

/** Names of series in an expression that do not exist, and labels that they do not have. */
function problems(expr: string): readonly string[] {
  const found: string[] = [];
  const used = [...expr.matchAll(/\b(docstokg_\w+)(?:\{([^}]*)\})?/g)];
  if (used.length === 0) found.push("names no metric");
  const known = new Set(TARGET_LABELS);
  for (const [, name = "", selector = ""] of used) {
    const labels = series.get(name);
    if (labels === undefined) found.push(`unknown series ${name}`);
    for (const label of labels ?? []) known.add(label);
    for (const [, label = ""] of selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g))
      if (![...(labels ?? []), ...TARGET_LABELS].includes(label)) found.push(`${name} has no label ${label}`);
  }
  for (const [, list = ""] of expr.matchAll(/\bby \(([^)]*)\)/g))
    for (const label of list.split(",").map(text => text.trim()))
      if (!known.has(label)) found.push(`no metric of it has the label ${label}`);
  return found;
}

test("every expression of the dashboard and the alerts names series and labels that exist", () => {
  assert.ok(targets.length >= 10 && rules.length >= 5);
  for (const { expr } of [...targets, ...rules]) assert.deepEqual(problems(expr), [], expr);
  for (const { query } of dashboard.templating.list.slice(1))
    assert.ok(series.has(/label_values\((\w+),/.exec(query)?.[1] ?? ""), query);
});

test("the check finds unknown series and labels", () => {
  assert.deepEqual(problems("rate(docstokg_rate_delay_ms_sum[5m])"), ["unknown series docstokg_rate_delay_ms_sum"]);
  assert.deepEqual(problems('docstokg_http_429_total{role="x"}'), ["docstokg_http_429_total has no label role"]);
  assert.deepEqual(problems("sum by (outcome) (docstokg_http_in_flight)"), ["no metric of it has the label outcome"]);
});

test("legends and annotations use labels that their expressions keep", () => {
  for (const { expr, legendFormat } of targets) {
    const kept =
      /\bby \(([^)]*)\)/
        .exec(expr)?.[1]
        ?.split(",")
        .map(text => text.trim()) ?? [];
    for (const [, label = ""] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) assert.ok(kept.includes(label), legendFormat);
  }
  for (const { alert, expr, annotations } of rules) {
    assert.match(alert, /^Docstokg[A-Z]\w+$/);
    const kept =
      /\bby \(([^)]*)\)/
        .exec(expr)?.[1]
        ?.split(",")
        .map(text => text.trim()) ?? [];
    const text = Object.values(annotations).join(" ");
    for (const [, label = ""] of text.matchAll(/\$labels\.(\w+)/g))
      assert.ok(kept.includes(label), `${alert}: ${label}`);
  }
});

test("panels have titles and descriptions, and do not overlap", () => {
  const cells = dashboard.panels.flatMap(
    ({ gridPos: { x, y, w, h } }: { gridPos: Record<"x" | "y" | "w" | "h", number> }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)} ${y + Math.floor(cell / w)}`),
  );
  assert.equal(new Set(cells).size, cells.length);
  for (const { title, description } of dashboard.panels) assert.ok(title && description);
});

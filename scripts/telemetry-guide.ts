/**
 * Generates the tables of report numbers, events and metrics in the telemetry guide from the code: `npm run telemetry-guide`.
 * A test checks that they are current.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { EVENT_SPECS, type FieldSpec } from "../src/telemetry/event-fields.ts";
import { exportedName, METRICS, type MetricName, type MetricSpec } from "../src/telemetry/metrics.ts";
import { NUMBER_DEFINITIONS } from "../src/telemetry/report/definitions.ts";
import { TABLE_OF } from "../src/telemetry/sqlite-tables.ts";

const guide = new URL("../docs/guides/telemetry.md", import.meta.url);

/** The guide as it is, and with its tables generated again. */
export function currentGuide(): { readonly now: string; readonly fresh: string } {
  const now = readFileSync(guide, "utf8");
  let fresh = now;
  for (const [name, content] of [
    ["numbers", numberTable()],
    ["events", eventTables()],
    ["metrics", metricTable()],
  ] as const)
    fresh = between(fresh, name, content);
  return { now, fresh };
}

function eventTables(): string {
  const specs = Object.entries(EVENT_SPECS) as [keyof typeof EVENT_SPECS, { about: string; fields: object }][];
  return specs
    .map(([type, { about, fields }]) => {
      const rows = (Object.entries(fields) as [string, FieldSpec][]).map(
        ([name, [kind, words]]) => `| \`${name}\` | ${kind.replace("?", ", optional")} | ${words} |`,
      );
      const table = rows.length === 0 ? "" : `\n| field | kind | meaning |\n|---|---|---|\n${rows.join("\n")}\n`;
      return `### \`${type}\`\n\n${about} In SQLite: \`${TABLE_OF[type]}\`.\n${table}`;
    })
    .join("\n");
}

function numberTable(): string {
  const rows = Object.entries(NUMBER_DEFINITIONS).map(([path, about]) => `| \`${path}\` | ${about} |`);
  return `| number | definition |\n|---|---|\n${rows.join("\n")}\n`;
}

function metricTable(): string {
  const rows = (Object.entries(METRICS) as [MetricName, MetricSpec][]).map(
    ([name, { kind, labels, about }]) =>
      `| \`${exportedName(name)}\` | ${kind} | ${labels.map(label => `\`${label}\``).join(", ")} | ${about} |`,
  );
  return `| metric | kind | labels | meaning |\n|---|---|---|---|\n${rows.join("\n")}\n`;
}

function between(text: string, name: string, content: string): string {
  const [begin, end] = [`<!-- ${name}: made by npm run telemetry-guide -->\n`, `<!-- /${name} -->`];
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from < 0 || to < from) throw new Error(`the guide has no marker comments for ${name}`);
  return `${text.slice(0, from)}${begin}\n${content}\n${text.slice(to)}`;
}

if (process.argv[1] === import.meta.filename) writeFileSync(guide, currentGuide().fresh);

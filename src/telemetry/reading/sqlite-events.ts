import type { DatabaseSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import { hasValidFields, withCurrentFields } from "../event-check.ts";
import { EVENT_SPECS, isEventType } from "../event-fields.ts";
import type { TelemetryEvent } from "../events.ts";
import type { FieldSpec } from "../fields/event-spec.ts";
import { EVENT_TABLES, type EventTable } from "../sqlite-tables.ts";
import { SkippedEventCounter } from "./skipped-events.ts";

type StoredEventRow = Readonly<Record<string, unknown>>;

/** The event loop gets a turn after this number of rows: about 1 ms of work. */
export const ROWS_PER_TURN = 100;

/** The fields of each event type. Built once, because every row needs them. */
const FIELDS = new Map<string, readonly { readonly name: string; readonly isFlag: boolean }[]>(
  Object.entries(EVENT_SPECS).map(([type, { fields }]) => [
    type,
    Object.entries<FieldSpec>(fields).map(([name, [kind]]) => ({ name, isFlag: kind.startsWith("flag") })),
  ]),
);

/** The tables of events in the file: one that an earlier version has written lacks some. */
export function eventTablesOf(db: DatabaseSync): readonly EventTable[] {
  const rows = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const names = new Set(rows.map(({ name }) => name));
  return EVENT_TABLES.filter(table => names.has(table));
}

/** The events of a run in the order of their times, merged from all tables. */
export async function* eventsOf(
  db: DatabaseSync,
  runId: string,
  skipped = new SkippedEventCounter(),
): AsyncGenerator<TelemetryEvent> {
  const heads = eventTablesOf(db).map(table => {
    const rows = db.prepare(`SELECT * FROM ${table} WHERE run_id = ? ORDER BY ts, seq`).iterate(runId);
    return { rows, row: nextOf(rows) };
  });
  for (let read = 1; ; read += 1) {
    const first = heads.reduce((least, head) => (isBefore(head.row, least.row) ? head : least));
    if (first.row === undefined) return;
    const event = eventOf(first.row, skipped);
    first.row = nextOf(first.rows);
    if (event !== undefined) yield event;
    if (read % ROWS_PER_TURN === 0) await nextTurn();
  }
}

function nextOf(rows: Iterator<unknown>): StoredEventRow | undefined {
  const { done, value } = rows.next();
  return done === true ? undefined : (value as StoredEventRow);
}

function isBefore(one: StoredEventRow | undefined, two: StoredEventRow | undefined): boolean {
  if (one === undefined || two === undefined) return two === undefined && one !== undefined;
  const byTime = Number(one["ts"]) - Number(two["ts"]);
  return byTime < 0 || (byTime === 0 && Number(one["seq"]) < Number(two["seq"]));
}

/** Undefined for an event type of a newer version, and for a row that is not a valid event. */
function eventOf(row: StoredEventRow, skipped: SkippedEventCounter): TelemetryEvent | undefined {
  const type = String(row["event_type"]);
  if (!isEventType(type)) {
    skipped.countUnknown(type);
    return undefined;
  }
  const event: Record<string, unknown> = {
    ts: row["ts"],
    event_type: type,
    run_id: row["run_id"],
    config_hash: row["config_hash"],
  };
  const fields = withCurrentFields(type, row);
  for (const { name, isFlag } of FIELDS.get(type) ?? []) {
    const value = fields[name];
    if (value !== null && value !== undefined) event[name] = isFlag ? value === 1 : value;
  }
  if (hasValidFields(type, event)) return event as unknown as TelemetryEvent;
  skipped.unreadable += 1;
  return undefined;
}

import type { DatabaseSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import { EVENT_SPECS, type FieldSpec, fieldProblem, isEventType } from "../event-fields.ts";
import type { EventType, TelemetryEvent } from "../events.ts";
import { EVENT_TABLES } from "../sqlite-tables.ts";
import { SkippedEvents } from "./skipped-events.ts";

type EventRow = Readonly<Record<string, unknown>>;

/** Rows between two turns of the event loop. */
const ROWS = 500;

/** The events of a run in the order in which they happened, out of all tables at once. */
export async function* eventsOf(
  db: DatabaseSync,
  runId: string,
  skipped = new SkippedEvents(),
): AsyncGenerator<TelemetryEvent> {
  const heads = EVENT_TABLES.map(table => {
    const rows = db.prepare(`SELECT * FROM ${table} WHERE run_id = ? ORDER BY ts, seq`).iterate(runId);
    return { rows, row: nextOf(rows) };
  });
  for (let read = 1; ; read += 1) {
    const first = heads.reduce((least, head) => (isBefore(head.row, least.row) ? head : least));
    if (first.row === undefined) return;
    const event = eventOf(first.row, skipped);
    first.row = nextOf(first.rows);
    if (event !== undefined) yield event;
    if (read % ROWS === 0) await nextTurn();
  }
}

function nextOf(rows: Iterator<unknown>): EventRow | undefined {
  const { done, value } = rows.next();
  return done === true ? undefined : (value as EventRow);
}

function isBefore(one: EventRow | undefined, two: EventRow | undefined): boolean {
  if (one === undefined || two === undefined) return two === undefined && one !== undefined;
  const byTime = Number(one["ts"]) - Number(two["ts"]);
  return byTime < 0 || (byTime === 0 && Number(one["seq"]) < Number(two["seq"]));
}

/** Undefined for a type that a newer version has written, and for what somebody else has. */
function eventOf(row: EventRow, skipped: SkippedEvents): TelemetryEvent | undefined {
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
  for (const [name, [kind]] of fieldsOf(type)) {
    const value = row[name];
    if (value !== null && value !== undefined) event[name] = kind.startsWith("flag") ? value === 1 : value;
  }
  if (fieldProblem(type, event) === undefined) return event as unknown as TelemetryEvent;
  skipped.unreadable += 1;
  return undefined;
}

function fieldsOf(type: EventType): readonly (readonly [string, FieldSpec])[] {
  return Object.entries<FieldSpec>(EVENT_SPECS[type].fields);
}
